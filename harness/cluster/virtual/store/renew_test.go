package store

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"pgregory.net/rapid"
)

var leases = schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}

func lease(spec object) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: object{"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
		"metadata": object{"name": "l", "namespace": "n"}, "spec": spec}}
}

// renewals is the life of a lease: mostly renewed, now and then taken over, changed by others, with and without a version.
func renewals(t *rapid.T, p *pair) string {
	key := Key{Resource: leases, Namespace: "n", Name: "l"}
	one := func(what string, of ...string) string { return rapid.SampledFrom(of).Draw(t, what) }
	seldom := func(what string) bool { return rapid.IntRange(0, 9).Draw(t, what) == 0 }
	if d := p.do(operation{verb: "create", key: key, object: lease(object{"holderIdentity": "a", "seconds": int64(2), "renewTime": "0"}), manager: one("creator", "", "m")}); d != "" {
		return d
	}
	for i, steps := 0, rapid.IntRange(1, 30).Draw(t, "steps"); i < steps; i++ {
		p.now = p.now.Add(time.Duration(rapid.IntRange(0, 3).Draw(t, "wait")) * time.Second)
		spec := object{"holderIdentity": "a", "seconds": int64(2), "renewTime": fmt.Sprint(rapid.IntRange(0, 20).Draw(t, "time"))}
		if seldom("holder") {
			spec["holderIdentity"] = one("who", "a", "b", "")
		}
		if seldom("other") {
			spec[one("field", "seconds", "more", "below")] = rapid.SampledFrom([]any{int64(3), "x", []any{"y"}, object{"z": "1"}, object{"z": "2"}}).Draw(t, "value")
		}
		if seldom("less") {
			delete(spec, one("field", "seconds", "holderIdentity"))
		}
		o := lease(spec)
		manager := "m"
		if seldom("manager") {
			manager = one("manager", "", "n")
		}
		if v, err := p.real.Get(key); err == nil && !seldom("old version") {
			o.SetResourceVersion(v.ResourceVersion())
			if rapid.Bool().Draw(t, "whole") {
				o = v.Object()
				o.Object["spec"] = spec
			}
		}
		switch {
		case seldom("label"):
			o.SetLabels(map[string]string{"l": "1"})
		case seldom("disowned"):
			o.SetManagedFields([]metav1.ManagedFieldsEntry{{}})
		case seldom("created"):
			o.SetCreationTimestamp(metav1.Time{Time: p.now})
		}
		if d := p.do(operation{verb: "update", key: key, object: o, manager: manager}); d != "" {
			return fmt.Sprintf("step %d: %s", i, d)
		}
	}
	return ""
}

func TestRenewalEqualsRealCode(t *testing.T) {
	if testing.Short() {
		t.Skip("long: make simulations")
	}
	types, answered := allTypes(t), 0
	rapid.Check(t, func(t *rapid.T) {
		p := newPair(types)
		if difference := renewals(t, p); difference != "" {
			t.Fatal(difference)
		}
		answered += p.model.answered
	})
	if answered < 20 {
		t.Errorf("%d renewals were answered without the real code, expected many", answered)
	}
}

// A renewal that counts its bytes wrong is the known-bad subject.
func TestWrongRenewalIsFound(t *testing.T) {
	types := allTypes(t)
	found := false
	for n := 0; n < 10 && !found; n++ { // few histories reach the limit of a size
		rapid.Check(t, func(t *rapid.T) {
			p := newPair(types)
			p.spoil = func(s *Store) {
				for _, r := range s.objects {
					if s.answered > 0 {
						r.content++
					}
				}
			}
			found = found || renewals(t, p) != ""
		})
	}
	if !found {
		t.Error("not one difference")
	}
}
