package store

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kmsharness/kmsharness/ci/crds"
)

func allTypes(t interface {
	Helper()
	Fatal(...any)
}) *Types {
	t.Helper()
	types, err := LoadTypes(crds.TechPreview)
	if err != nil {
		t.Fatal(err)
	}
	return types
}

var (
	kubeAPIServers = schema.GroupVersionResource{Group: "operator.openshift.io", Version: "v1", Resource: "kubeapiservers"}
	cluster        = Key{Resource: kubeAPIServers, Name: "cluster"}
	start          = time.Date(2026, 5, 8, 12, 0, 0, 0, time.UTC)
)

type object = map[string]any

func operator(kind string, more object) *unstructured.Unstructured {
	o := object{"apiVersion": "operator.openshift.io/v1", "kind": kind, "metadata": object{"name": "cluster"}}
	for k, v := range more {
		o[k] = v
	}
	return &unstructured.Unstructured{Object: o}
}

func kubeAPIServer(status object) *unstructured.Unstructured {
	return operator("KubeAPIServer", object{"status": status})
}

func condition(name, message string) any {
	return object{"type": name, "status": "True", "reason": "AsExpected", "message": message, "lastTransitionTime": "2026-05-08T12:00:00Z"}
}

func conditions(items ...any) *unstructured.Unstructured {
	return kubeAPIServer(object{"conditions": items})
}

// fixture is a store with a CR that has no status.
type fixture struct {
	testing.TB
	*Store
	now time.Time
}

func newFixture(t testing.TB) *fixture {
	t.Helper()
	f := &fixture{TB: t, Store: New(allTypes(t)), now: start}
	_, err := f.Create(f.now, kubeAPIServers, operator("KubeAPIServer", object{"spec": object{"managementState": "Managed"}}), "harness")
	f.must(err)
	return f
}

func (f *fixture) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

// apply is one that must succeed, a second after the last.
func (f *fixture) apply(manager string, patch *unstructured.Unstructured) *Version {
	f.Helper()
	v, err := f.try(manager, patch, false)
	f.must(err)
	return v
}

func (f *fixture) try(manager string, patch *unstructured.Unstructured, force bool) (*Version, error) {
	f.now = f.now.Add(time.Second)
	return f.Apply(f.now, kubeAPIServers, patch, ApplyOptions{Manager: manager, Force: force, Subresource: "status"})
}

// owned is the fields of each manager.
func owned(v *Version) map[string]string {
	out := map[string]string{}
	for _, e := range v.owners {
		out[e.Manager+"/"+e.Subresource] = e.FieldsV1.GetRawString()
	}
	return out
}

func entryOf(t testing.TB, v *Version, manager string) metav1.ManagedFieldsEntry {
	t.Helper()
	for _, e := range v.owners {
		if e.Manager == manager {
			return e
		}
	}
	t.Fatalf("%s owns nothing", manager)
	return metav1.ManagedFieldsEntry{}
}

func conditionOf(v *Version, name string) object {
	list, _, _ := unstructured.NestedSlice(v.Body(), "status", "conditions")
	for _, c := range list {
		if m := c.(object); m["type"] == name {
			return m
		}
	}
	return nil
}
