package operator

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/operator/core"
	"github.com/kmsharness/kmsharness/operator/revision"
)

// failing is since when plugins have not been healthy, by node and key.
type failing map[string]time.Time

// report is what reporters say on the CR of an operator.
type report struct {
	node string
	contract.Entry
}

// reports are those on a CR of a kind, in whichever form they are made. Of what nobody can read nothing is known.
func reports(cr map[string]any, kind string) (all []report) {
	conditions, _, _ := unstructured.NestedSlice(cr, "status", "conditions")
	for _, one := range conditions {
		c, _ := one.(map[string]any)
		kind, _, _ := unstructured.NestedString(c, "type")
		message, _, _ := unstructured.NestedString(c, "message")
		if node, is := contract.NodeOfCondition(kind); is {
			entries, _ := contract.DecodeMessage(message) // without entries if it is malformed
			for _, e := range entries {
				all = append(all, report{node, e})
			}
		}
	}
	items, _, _ := unstructured.NestedSlice(cr, append(typed(kind), "healthReports")...)
	for _, one := range items {
		var t contract.TypedReport
		if m, is := one.(map[string]any); !is || runtime.DefaultUnstructuredConverter.FromUnstructured(m, &t) != nil {
			continue
		}
		if e, err := t.Untyped(); err == nil {
			all = append(all, report{t.NodeName, e})
		}
	}
	return all
}

// typed is where the CR of a kind has the typed status.
func typed(kind string) []string {
	if kind == "Authentication" {
		return []string{"status", "oauthAPIServer", "encryptionStatus"}
	}
	return []string{"status", "encryptionStatus"}
}

// add puts reports beside the nodes that are expected. Of two for one plugin the newer counts.
func (f failing) add(s *Seen, all []report) {
	for _, r := range all {
		n, expected := s.Nodes[r.node]
		if !expected {
			continue
		}
		if n.Report == nil {
			n.Report = map[uint64]core.Entry{}
		}
		if id, err := revision.ParseKeyID(r.KeyID); err == nil && !n.Report[id].Checked.After(r.LastChecked) {
			n.Report[id] = f.entry(id, r)
		}
		s.Nodes[r.node] = n
	}
}

// entry is a report of a key's plugin, with since when it fails.
func (f failing) entry(id uint64, r report) core.Entry {
	healthy := r.Status == contract.StatusHealthy
	return core.Entry{KEK: r.KEKID, Healthy: healthy, Checked: r.LastChecked, Detail: r.Detail, Failing: f.since(r.node, id, healthy, r.LastChecked)}
}

// since remembers when a plugin was first seen failing.
func (f failing) since(node string, id uint64, healthy bool, checked time.Time) time.Time {
	key := fmt.Sprintf("%s/%d", node, id)
	if healthy {
		delete(f, key)
		return time.Time{}
	}
	if _, known := f[key]; !known {
		f[key] = checked
	}
	return f[key]
}
