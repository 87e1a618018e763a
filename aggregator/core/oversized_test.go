package core

import (
	"strconv"
	"strings"
	"testing"

	"github.com/kmsharness/kmsharness/contract"
)

// A report over its bounds goes at once, in either form, also of a node that should report. The other nodes' stay.
func TestOversizedReportsAreEvicted(t *testing.T) {
	huge := strings.Repeat("x", contract.MaxReportBytes+1)
	typed := func(w *world, count int, item map[string]any) {
		var items []any
		for i := range count {
			items = append(items, map[string]any{"nodeName": "a", "keyID": strconv.Itoa(i), "status": "Healthy", "lastCheckedTime": contract.FormatTime(w.now), "remoteKeyID": item["remoteKeyID"], "detail": item["detail"]})
		}
		w.status()["encryptionStatus"] = map[string]any{"healthReports": items}
	}
	k := strings.Repeat("k", 1024)
	for name, c := range map[string]struct {
		write func(*world)
		gone  bool
	}{
		"message":       {func(w *world) { w.condition(Condition{Type: contract.ConditionType("a"), Message: huge}) }, true},
		"reason":        {func(w *world) { w.condition(Condition{Type: contract.ConditionType("a"), Reason: huge}) }, true},
		"status":        {func(w *world) { w.condition(Condition{Type: contract.ConditionType("a"), Status: huge}) }, true},
		"most":          {func(w *world) { w.condition(Condition{Type: contract.ConditionType("a"), Message: huge[1:]}) }, false},
		"typed":         {func(w *world) { typed(w, 32, map[string]any{"remoteKeyID": k, "detail": k + k}) }, true},
		"typed, many":   {func(w *world) { typed(w, 33, map[string]any{"remoteKeyID": "k"}) }, true},
		"typed, most":   {func(w *world) { typed(w, 32, map[string]any{"remoteKeyID": k, "detail": k[:1000]}) }, false},
		"somebody else": {func(w *world) { w.condition(Condition{Type: "FooDegraded", Status: "False", Message: huge}) }, false},
	} {
		w := newWorld(t)
		w.cr["metadata"] = map[string]any{"name": "cluster", "resourceVersion": "7"}
		w.step()
		w.report("b", 0, healthy("1", "k"))
		c.write(w)
		d := w.step()
		left := Read(w.cr, w.op)
		if gone := len(d.Remove.Nodes) == 1 && d.Remove.Nodes[0] == "a" && left.Reports["a"].Entries == nil; gone != c.gone || len(left.Reports["b"].Entries) != 1 {
			t.Errorf("%s: removed %v, left %d reports", name, d.Remove.Nodes, len(left.Reports))
		}
	}
}

// The patch that removes a report fits into a request whatever the report has in it, and still fails after another write.
func TestRemovalPatchOfAnOversizedReport(t *testing.T) {
	w := newWorld(t)
	w.cr["metadata"] = map[string]any{"name": "cluster", "resourceVersion": "7"}
	w.condition(Condition{Type: contract.ConditionType("a"), Message: strings.Repeat("<", 1<<20)})
	ops := RemovalPatch(w.cr, w.op, Removal{Nodes: []string{"a"}})
	w.cr["metadata"] = map[string]any{"name": "cluster", "resourceVersion": "8"}
	if _, err := tryPatch(w.cr, ops); err == nil {
		t.Error("the patch removed a report that it had not seen")
	}
	w.cr["metadata"] = map[string]any{"name": "cluster", "resourceVersion": "7"}
	if left := Read(patched(t, w.cr, ops), w.op); len(left.Reports) > 0 || len(text(map[string]any{"p": ops[0].Value}, "p")) > 100 {
		t.Errorf("left %v", left.Reports)
	}
}
