package sim

import (
	"reflect"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kmsharness/kmsharness/ci/crds"
	"github.com/kmsharness/kmsharness/harness/backend"
	"github.com/kmsharness/kmsharness/harness/backend/sim/store"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/record/watch"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

// lived is a cluster whose reporters wrote for a while, in one wire form, some of them ill.
func lived(t *testing.T, ssa store.SSA, form string) *environment {
	t.Helper()
	types, err := store.LoadTypes(crds.TechPreview)
	if err != nil {
		t.Fatal(err)
	}
	s := (&scenario.Scenario{Name: "pictures", Contract: form, Topology: scenario.Topology{ControlPlanes: 3, KeyIDs: []string{"2", "1"}}}).WithDefaults()
	e, err := newEnvironment(backend.Spec{Scenario: s, Seed: 1, Log: history.NewLog(nil)}, LocalTiming(), store.New(types, store.Options{SSA: ssa}), Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.w.k.Close)
	e.w.k.RunUntil(epoch().Add(5 * time.Second))
	e.w.nodes[0].plugins[0].end(history.ProcessKilled, "")
	e.w.nodes[2].reporter.end(history.ProcessKilled, "")
	e.w.k.RunUntil(epoch().Add(15 * time.Second))
	e.w.nodes[0].plugins[0].start(func() {})
	e.w.k.RunUntil(epoch().Add(20 * time.Second))
	return e
}

// A picture is what the recorder of real backends makes of the same object, whatever was recorded before.
func TestPictureIsWhatTheRecorderConverts(t *testing.T) {
	for _, ssa := range []store.SSA{store.Real, store.Model} {
		for _, form := range []string{"conditions", "healthreports"} {
			e := lived(t, ssa, form)
			events, err := e.w.store.Since(1)
			if err != nil {
				t.Fatal(err)
			}
			last, compared := map[store.Key]*picture{}, 0
			for _, event := range events {
				v := event.Version
				if !e.w.observed(v.Key.Resource) {
					continue
				}
				p := last[v.Key].next("r", v, &watch.OwnerReader{})
				want, err := watch.Convert("r", v.Object())
				if err != nil || p == nil {
					t.Fatalf("%s %s: %v, %v", ssa, form, p, err)
				}
				if len(p.object.Conditions) != len(want.Conditions) || !reflect.DeepEqual(encoded(t, p.object), encoded(t, want)) {
					t.Fatalf("%s %s, revision %d:\ngot  %+v\nwant %+v", ssa, form, v.Revision, p.object, want)
				}
				last[v.Key] = p
				compared++
			}
			if compared < 50 {
				t.Errorf("%s %s: only %d versions", ssa, form, compared)
			}
		}
	}
}

// encoded is an object as a history has it, where an empty list is none.
func encoded(t *testing.T, o *history.Object) string {
	t.Helper()
	out := newObject("v1", "Object", "o", map[string]any{"owners": o.Owners, "conditions": append([]history.Condition{}, o.Conditions...)})
	out.Object["rest"] = []any{o.Resource, o.Name, o.ResourceVersion, o.Deleted, len(o.HealthReports)}
	for _, r := range o.HealthReports {
		out.Object["rest"] = append(out.Object["rest"].([]any), r)
	}
	return string(encode(&unstructured.Unstructured{Object: out.Object}))
}

// What has another shape than the recorder expects is left to it.
func TestPictureOfAnotherShapeIsNone(t *testing.T) {
	for _, status := range []map[string]any{
		{"conditions": "none"},
		{"conditions": []any{"text"}},
		{"conditions": []any{map[string]any{"type": "A", "status": int64(1)}}},
		{"conditions": []any{map[string]any{"type": "A", "observedGeneration": "1"}}},
		{"encryptionStatus": map[string]any{"healthReports": []any{map[string]any{"keyID": true}}}},
	} {
		lists, ok := statusLists(map[string]any{"status": status})
		if ok {
			_, ok = shared(nil, lists[0], nil, conditionOf)
		}
		if ok {
			_, ok = shared(nil, lists[1], nil, reportOf)
		}
		if ok {
			t.Errorf("%v was converted", status)
		}
	}
}
