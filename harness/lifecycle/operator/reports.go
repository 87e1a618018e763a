package operator

import (
	"fmt"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/lifecycle/core"
)

// addReports puts what reporters say beside the nodes. It reads conditions; of a message that nobody can read nothing is known.
func (o *Operator) addReports(s *seen) {
	item, there, err := o.sources.operator.GetStore().GetByKey(object)
	if err != nil || !there {
		return
	}
	conditions, _, err := unstructured.NestedSlice(item.(*unstructured.Unstructured).Object, "status", "conditions")
	if err != nil {
		return
	}
	for _, one := range conditions {
		c, _ := one.(map[string]any)
		kind, _, _ := unstructured.NestedString(c, "type")
		message, _, _ := unstructured.NestedString(c, "message")
		name, is := contract.NodeOfCondition(kind)
		n, expected := s.Nodes[name]
		if !is || !expected {
			continue
		}
		n.Report = o.report(name, message)
		s.Nodes[name] = n
	}
}

func (o *Operator) report(node, message string) map[uint64]core.Entry {
	entries, err := contract.DecodeMessage(message)
	if err != nil {
		return nil
	}
	out := map[uint64]core.Entry{}
	for _, e := range entries {
		id, err := strconv.ParseUint(e.KeyID, 10, 64)
		if err != nil {
			continue // a plugin of another scheme
		}
		healthy := e.Status == contract.StatusHealthy
		out[id] = core.Entry{KEK: e.KEKID, Healthy: healthy, Checked: e.LastChecked, Detail: e.Detail, Failing: o.since(node, id, healthy, e.LastChecked)}
	}
	return out
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
