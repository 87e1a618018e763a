package core

import (
	"encoding/json"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kmsharness/kmsharness/contract"
)

// patched applies a removal with the library that the API server uses.
func patched(t testing.TB, cr map[string]any, ops []PatchOp) map[string]any {
	t.Helper()
	out, err := tryPatch(cr, ops)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func tryPatch(cr map[string]any, ops []PatchOp) (map[string]any, error) {
	if len(ops) == 0 {
		return cr, nil
	}
	data, err := json.Marshal(ops)
	if err != nil {
		return nil, err
	}
	patch, err := jsonpatch.DecodePatch(data)
	if err != nil {
		return nil, err
	}
	doc, err := json.Marshal(cr)
	if err != nil {
		return nil, err
	}
	if doc, err = patch.Apply(doc); err != nil {
		return nil, err
	}
	var out map[string]any
	return out, json.Unmarshal(doc, &out)
}

func TestRemovalPatchTakesOnlyWhatItNames(t *testing.T) {
	for _, typed := range []bool{false, true} {
		w := newWorld(t)
		w.typedForm = typed
		for _, n := range []string{"a", "b", "c"} {
			w.report(n, 0, healthy("1", "k"), healthy("2", "k"))
		}
		got := Read(patched(t, w.cr, RemovalPatch(w.cr, w.op, Removal{Nodes: []string{"a", "c"}})), w.op)
		if len(got.Reports) != 1 || len(got.Reports["b"].Entries) != 2 {
			t.Errorf("typed %v: left %v, want b's two entries", typed, got.Reports)
		}
	}
}

// minItems 1 and minProperties 1: what would be left empty goes too, and what holds something else stays.
func TestRemovalOfTheLastTypedReport(t *testing.T) {
	w := newWorld(t)
	w.typedForm = true
	w.report("a", 0, healthy("1", "k"))
	all := Removal{Nodes: []string{"a"}}
	status := patched(t, w.cr, RemovalPatch(w.cr, w.op, all))["status"].(map[string]any)
	if _, left := status["encryptionStatus"]; left {
		t.Error("an empty encryptionStatus is left")
	}
	w.status()["encryptionStatus"].(map[string]any)["preflight"] = map[string]any{"observedConfigHash": "abcdefgh"}
	status = patched(t, w.cr, RemovalPatch(w.cr, w.op, all))["status"].(map[string]any)
	if got := status["encryptionStatus"].(map[string]any); got["preflight"] == nil || got["healthReports"] != nil {
		t.Errorf("got %v, want preflight alone", got)
	}
}

// A writer that came in between makes the whole patch fail: nothing is removed that was not seen.
func TestRemovalPatchFailsAfterAnotherWrite(t *testing.T) {
	for _, typed := range []bool{false, true} {
		w := newWorld(t)
		w.typedForm = typed
		w.report("a", testInterval, healthy("1", "k"))
		ops := RemovalPatch(w.cr, w.op, Removal{Nodes: []string{"a"}})
		w.report("a", 0, healthy("1", "k"))
		if _, err := tryPatch(w.cr, ops); err == nil {
			t.Errorf("typed %v: the patch removed a report that it had not seen", typed)
		}
	}
}

// The last entry goes with its list alone while something else is beside it. What goes meanwhile makes the patch fail, which would leave nothing.
func TestRemovalPatchFailsAfterAnotherRemoval(t *testing.T) {
	w := newWorld(t)
	w.typedForm = true
	w.report("a", 0, healthy("1", "k"))
	status := w.status()["encryptionStatus"].(map[string]any)
	status["preflight"] = map[string]any{"observedConfigHash": "abcdefgh"}
	seen := (&unstructured.Unstructured{Object: w.cr}).DeepCopy().Object
	ops := RemovalPatch(seen, w.op, Removal{Nodes: []string{"a"}})
	delete(status, "preflight")
	if out, err := tryPatch(w.cr, ops); err == nil {
		t.Errorf("the patch leaves %v", out["status"])
	}
}

func TestRemovalPatchOfNothing(t *testing.T) {
	w := newWorld(t)
	if ops := RemovalPatch(w.cr, w.op, Removal{Nodes: []string{"a"}, Conditions: contract.RollupTypes()}); len(ops) != 0 {
		t.Errorf("got %v, want no operation", ops)
	}
}
