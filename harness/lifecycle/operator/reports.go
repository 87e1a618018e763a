package operator

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/lifecycle/core"
)

// addReports puts what reporters say beside the nodes, in whichever form they say it. Of what nobody can read nothing is known.
func (o *Operator) addReports(s *seen) {
	item, there, err := o.sources.operator.GetStore().GetByKey(object)
	if err != nil || !there {
		return
	}
	cr := item.(*unstructured.Unstructured).Object
	conditions, _, _ := unstructured.NestedSlice(cr, "status", "conditions")
	for _, one := range conditions {
		c, _ := one.(map[string]any)
		kind, _, _ := unstructured.NestedString(c, "type")
		message, _, _ := unstructured.NestedString(c, "message")
		if node, is := contract.NodeOfCondition(kind); is {
			entries, _ := contract.DecodeMessage(message) // without entries if it is malformed
			o.add(s, node, entries...)
		}
	}
	items, _, _ := unstructured.NestedSlice(cr, append(o.typed(), "healthReports")...)
	for _, one := range items {
		var t contract.TypedReport
		if m, is := one.(map[string]any); !is || runtime.DefaultUnstructuredConverter.FromUnstructured(m, &t) != nil {
			continue
		}
		if e, err := t.Untyped(); err == nil {
			o.add(s, t.NodeName, e)
		}
	}
}

// add puts entries beside a node that is expected. Of two for one plugin the newer counts.
func (o *Operator) add(s *seen, node string, entries ...contract.Entry) {
	n, expected := s.Nodes[node]
	if !expected {
		return
	}
	if n.Report == nil {
		n.Report = map[uint64]core.Entry{}
	}
	for _, e := range entries {
		id, known := o.Core.Scheme.KeyOf(s.Keys, e.KeyID)
		if !known || n.Report[id].Checked.After(e.LastChecked) {
			continue // a plugin of another scheme, or what was said before
		}
		healthy := e.Status == contract.StatusHealthy
		n.Report[id] = core.Entry{KEK: e.KEKID, Healthy: healthy, Checked: e.LastChecked, Detail: e.Detail, Failing: o.since(node, id, healthy, e.LastChecked)}
	}
	s.Nodes[node] = n
}

// since remembers when a plugin was first seen failing.
func (o *Operator) since(node string, id uint64, healthy bool, checked time.Time) time.Time {
	key := fmt.Sprintf("%s/%d", node, id)
	if healthy {
		delete(o.failing, key)
		return time.Time{}
	}
	if _, known := o.failing[key]; !known {
		o.failing[key] = checked
	}
	return o.failing[key]
}
