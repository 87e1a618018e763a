package store

import (
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// The cases that Kubernetes' documentation of Server-Side Apply describes, on the objects of this project.
func TestOwnership(t *testing.T) {
	for name, test := range map[string]func(f *fixture){
		"a second manager with another value conflicts, and with force takes over": func(f *fixture) {
			f.apply("a", conditions(condition("A", "1")))
			if _, err := f.try("b", conditions(condition("A", "2")), false); !apierrors.IsConflict(err) {
				f.Errorf("without force: %v", err)
			}
			v, err := f.try("b", conditions(condition("A", "2")), true)
			f.must(err)
			f.owns(v, "a/status", ".status.reason.type.lastTransitionTime")
			f.owns(v, "b/status", ".message.status.reason.type.lastTransitionTime")
		},
		"equal values are owned by both, and go with the last of them": func(f *fixture) {
			f.apply("a", conditions(condition("A", "1")))
			f.apply("b", conditions(condition("A", "1")))
			v := f.apply("a", conditions())
			if conditionOf(v, "A") == nil {
				f.Error("gone with the first of two owners")
			}
			f.owns(v, "a/status", "nothing")
			f.apply("c", conditions(condition("C", "1")))
			if v = f.apply("b", kubeAPIServer(nil)); conditionOf(v, "A") != nil {
				f.Error("still there after its last owner")
			}
		},
		"the last field of a status cannot be given up: null would be left": func(f *fixture) {
			f.apply("a", conditions(condition("A", "1")))
			if _, err := f.try("a", kubeAPIServer(nil), true); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "in body must be of type object: \"null\"") {
				f.Errorf("got %v", err)
			}
		},
		"what a manager no longer applies goes, and nothing else": func(f *fixture) {
			f.apply("a", conditions(condition("A", "1"), condition("B", "1")))
			f.apply("c", conditions(condition("C", "1")))
			v := f.apply("a", conditions(condition("B", "1")))
			if conditionOf(v, "A") != nil || conditionOf(v, "B") == nil || conditionOf(v, "C") == nil {
				f.Errorf("left: %v", v.Body()["status"])
			}
		},
		"a field of an item goes alone": func(f *fixture) {
			f.apply("a", conditions(condition("A", "1")))
			less := condition("A", "1").(object)
			delete(less, "message")
			if v := f.apply("a", conditions(less)); conditionOf(v, "A")["message"] != nil || conditionOf(v, "A")["reason"] == nil {
				f.Errorf("left: %v", conditionOf(v, "A"))
			}
		},
		"an update takes without asking, and an apply over it conflicts": func(f *fixture) {
			o := f.apply("a", conditions(condition("A", "1"))).Object()
			f.must(unstructured.SetNestedSlice(o.Object, []any{condition("A", "2")}, "status", "conditions"))
			v, err := f.Update(f.now, kubeAPIServers, o, UpdateOptions{Manager: "u", Subresource: "status"})
			f.must(err)
			f.owns(v, "u/status", ".message")
			_, err = f.try("a", conditions(condition("A", "3")), false)
			if !apierrors.IsConflict(err) || !strings.Contains(err.Error(), `conflict with "u" with subresource "status" using operator.openshift.io/v1: .status.conditions[type="A"].message`) {
				f.Errorf("got %v", err)
			}
		},
		"a JSON patch removes what is another's": func(f *fixture) {
			f.apply("a", conditions(condition("A", "1")))
			v, err := f.JSONPatch(f.now, cluster, []byte(`[{"op":"remove","path":"/status/conditions/0"}]`), UpdateOptions{Manager: "u", Subresource: "status"})
			f.must(err)
			f.owns(v, "a/status", "nothing")
			if conditionOf(v, "A") != nil {
				f.Error("still there")
			}
			_, err = f.JSONPatch(f.now, cluster, []byte(`[{"op":"test","path":"/status/conditions","value":[1]}]`), UpdateOptions{Manager: "u", Subresource: "status"})
			if err == nil || !strings.Contains(err.Error(), "the server rejected our request due to an error in our request") {
				f.Errorf("a test that fails: %v", err)
			}
		},
		"times move with what changed": func(f *fixture) {
			v := f.apply("a", conditions(condition("A", "1")))
			f.at(v, "a", f.now)
			first := f.now
			f.at(f.apply("b", conditions(condition("B", "1"))), "a", first)
			f.at(f.apply("a", conditions(condition("A", "1"))), "a", first)
			f.at(f.apply("a", conditions(condition("A", "2"))), "a", first.Add(3*time.Second))
			if e := entryOf(f, f.apply("c", conditions(condition("A", "2"))), "c"); e.Time != nil {
				f.Errorf("one who changed nothing has the time %v", e.Time)
			}
		},
		"an update of an object that had no owners keeps it without": func(f *fixture) {
			o := f.apply("a", conditions(condition("A", "1"), condition("B", "1"))).Object()
			o.Object["metadata"].(object)["managedFields"] = []any{object{}}
			v, err := f.Update(f.now, kubeAPIServers, o, UpdateOptions{Manager: "u"})
			f.must(err)
			if len(v.owners) != 0 {
				f.Errorf("owned by %v", owned(v))
			}
			v = f.apply("b", conditions(condition("A", "1")))
			f.owns(v, "before-first-apply/status", ".message")
			if got := owned(v)["before-first-apply/status"]; !strings.Contains(got, `"k:{\"type\":\"B\"}"`) {
				f.Errorf("before-first-apply owns %s, expected B, too", got)
			}
		},
		"old updates are merged": func(f *fixture) {
			var all []any
			var v *Version
			for _, m := range "abcdefghijklm" {
				before, err := f.Get(cluster)
				f.must(err)
				o := before.Object()
				all = append(all, condition(strings.ToUpper(string(m)), "1"))
				f.must(unstructured.SetNestedSlice(o.Object, all, "status", "conditions"))
				f.now = f.now.Add(time.Second)
				v, err = f.Update(f.now, kubeAPIServers, o, UpdateOptions{Manager: string(m), Subresource: "status"})
				f.must(err)
			}
			f.owns(v, "a/status", "nothing")
			f.owns(v, "ancient-changes/", ".message")
			if len(v.owners) != 10 {
				f.Errorf("%d entries", len(v.owners))
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			test(newFixture(t))
		})
	}
}

// owns holds the fields of a manager against some names, each after a dot; "nothing" is that it has no entry.
func (f *fixture) owns(v *Version, manager, fields string) {
	f.Helper()
	got, ok := owned(v)[manager]
	if fields == "nothing" {
		if ok {
			f.Errorf("%s owns %s", manager, got)
		}
		return
	}
	for _, name := range strings.Split(fields, ".")[1:] {
		if !strings.Contains(got, `"f:`+name+`"`) {
			f.Errorf("%s owns %s, expected %s", manager, got, name)
		}
	}
	if strings.Contains(got, `"f:message"`) && !strings.Contains(fields, "message") {
		f.Errorf("%s owns %s, expected no message", manager, got)
	}
}

func (f *fixture) at(v *Version, manager string, want time.Time) {
	f.Helper()
	if got := entryOf(f, v, manager).Time; got == nil || !got.Time.Equal(want) {
		f.Errorf("%s wrote at %v, want %v", manager, got, want)
	}
}
