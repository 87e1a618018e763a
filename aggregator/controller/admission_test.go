package controller

import (
	"maps"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kmsharness/kmsharness/contract"
)

// A reporter's identity applies its own entry and nothing else, in both wire forms.
func TestReporterIsNarrowedToItsOwnEntry(t *testing.T) {
	for _, operator := range []string{"kubeapiserver", "authentication"} {
		t.Run(operator, func(t *testing.T) { narrowed(start(t, operator)) })
	}
}

func narrowed(e *environment) {
	own, other := e.reporter("cp-1", healthyEntry("1", "kek-a")), e.reporter("cp-2", healthyEntry("1", "kek-a"))
	denied := func(status map[string]any, manager string) string {
		err := own.apply(manager, status)
		if err == nil {
			return ""
		}
		_, text, _ := strings.Cut(err.Error(), "denied request: ")
		return text
	}
	// The policy takes effect a moment after it was created.
	eventually(e, 20*time.Second, "a reporter writes only its own condition, KMSHealthReporter_<node>", func() string {
		return denied(conditionStatus(other.report()), contract.FieldManager("cp-1"))
	})
	for name, c := range map[string]struct {
		status  map[string]any
		manager string
		want    string
	}{
		"own condition":            {conditionStatus(own.report()), contract.FieldManager("cp-1"), ""},
		"own typed report":         {own.typedStatus(own.report()), contract.FieldManager("cp-1"), ""},
		"typed report of another":  {own.typedStatus(other.report()), contract.FieldManager("cp-1"), "a reporter writes only the health reports of its own node"},
		"under any manager":        {conditionStatus(own.report()), "kms-health-reporter", ""},
		"another field":            {map[string]any{"readyReplicas": int64(7)}, contract.FieldManager("cp-1"), "a reporter leaves every other field of the status alone"},
		"a rollup":                 {conditionNamed(contract.ConditionDegraded), contract.FieldManager("cp-1"), "a reporter writes only its own condition, KMSHealthReporter_<node>"},
		"own condition once again": {conditionStatus(own.report()), contract.FieldManager("cp-1"), ""},
	} {
		if got := denied(c.status, c.manager); got != c.want {
			e.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
	many := own.manyReports(contract.MaxEntries)
	if got := denied(many, contract.FieldManager("cp-1")); got != "" {
		e.Errorf("%d reports of one node: %s", contract.MaxEntries, got)
	}
	many = own.manyReports(contract.MaxEntries + 1)
	if got := denied(many, contract.FieldManager("cp-1")); got != "a reporter has at most 32 health reports, one for each plugin of its node" {
		e.Errorf("one more: got %q", got)
	}
	longName := strings.Repeat("n", 120)
	long := e.reporter(longName, healthyEntry("1", "kek-a"))
	if err := long.write(); err != nil {
		e.Errorf("a node with a long name: %v", err)
	}
	must(e, other.write())
	if got := denied(conditionStatus(own.report()), contract.FieldManager("cp-2")); got != "a reporter writes only its own condition, KMSHealthReporter_<node>" {
		e.Errorf("under the manager of another, whose entry that removes: got %q", got)
	}
	must(e, own.apply("kms-health-reporter", map[string]any{})) // gives up its share of the condition
	own.typed = true
	must(e, own.write()) // the condition goes, as its manager no longer applies it: that is its own entry, too
	if got := e.observed().Reports; len(got) != 3 {
		e.Errorf("got %d reports, want those of 3 nodes: %v", len(got), got)
	}
}

// manyReports is a status with n reports of its node, which the contract need not allow.
func (r *fakeReporter) manyReports(n int) map[string]any {
	path := r.e.operator.TypedPath[1:]
	out := r.typedStatus(r.report())
	list, _, err := unstructured.NestedSlice(out, path...)
	must(r.e, err)
	for len(list) < n {
		further := maps.Clone(list[0].(map[string]any))
		further["keyID"] = strconv.Itoa(100 + len(list))
		list = append(list, further)
	}
	must(r.e, unstructured.SetNestedSlice(out, list, path...))
	return out
}

func conditionNamed(name string) map[string]any {
	return map[string]any{"conditions": []any{map[string]any{
		"type": name, "status": "False", "reason": "X", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z",
	}}}
}
