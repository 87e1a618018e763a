package manifests

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kmsharness/kmsharness/contract"
)

func TestObjectsOfEveryOperator(t *testing.T) {
	for _, o := range []Options{
		{}, {Operator: "kubeapiserver"},
		{Operator: "openshiftapiserver", PodNamespace: "openshift-apiserver"},
		{Operator: "authentication", PodNamespace: "openshift-oauth-apiserver"},
	} {
		objects, err := Objects(o)
		if err != nil {
			t.Fatalf("%+v: %v", o, err)
		}
		seen := map[string]bool{}
		for _, object := range objects {
			id := object.GetKind() + "/" + object.GetNamespace() + "/" + object.GetName()
			if object.GetName() == "" || object.GetAPIVersion() == "" || seen[id] {
				t.Errorf("%+v: %q is nameless, without a version or there twice", o, id)
			}
			seen[id] = true
		}
		if objects[0].GetKind() != "Namespace" {
			t.Errorf("%+v: the namespace does not come first", o)
		}
	}
}

func TestUnknownOperator(t *testing.T) {
	if _, err := Objects(Options{Operator: "etcd"}); err == nil || !strings.Contains(err.Error(), "etcd") {
		t.Errorf("got %v, want an error that names the operator", err)
	}
}

// Least privilege: a reporter has two verbs on one object, and no role of either identity has a wildcard.
func TestLeastPrivilege(t *testing.T) {
	objects, err := Objects(Options{})
	if err != nil {
		t.Fatal(err)
	}
	operator, err := EncryptionOperator()
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range append(objects, operator...) {
		for _, rule := range rules(o) {
			verbs := stringsOf(rule["verbs"])
			if slices.Contains(verbs, "*") || slices.Contains(stringsOf(rule["resources"]), "*") {
				t.Errorf("%s has a wildcard", o.GetName())
			}
			if strings.HasPrefix(o.GetName(), "kms-health-reporter") && !slices.Contains([]string{"get", "patch"}, strings.Join(verbs, ",")) {
				t.Errorf("%s may %v", o.GetName(), verbs)
			}
			// A create has no name that RBAC knows. Of everything else there is one in a namespace.
			if leases := slices.Contains(stringsOf(rule["resources"]), "leases"); leases && len(stringsOf(rule["resourceNames"])) != 1 && !slices.Equal(verbs, []string{"create"}) {
				t.Errorf("%s %s may %v every lease of %s", o.GetKind(), o.GetName(), verbs, o.GetNamespace())
			}
		}
	}
}

func TestSubjectsAreTheContracts(t *testing.T) {
	objects, err := Objects(Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		subjects, _, _ := unstructured.NestedSlice(o.Object, "subjects")
		for _, s := range subjects {
			name := s.(map[string]any)["name"]
			if name != contract.ReporterGroup && name != contract.TokenGroup && name != contract.ReporterServiceAccount && name != contract.AggregatorIdentity {
				t.Errorf("%s is bound to %v", o.GetName(), name)
			}
		}
	}
}

func rules(o *unstructured.Unstructured) []map[string]any {
	items, _, _ := unstructured.NestedSlice(o.Object, "rules")
	var out []map[string]any
	for _, i := range items {
		out = append(out, i.(map[string]any))
	}
	return out
}

func stringsOf(v any) []string {
	items, _ := v.([]any)
	var out []string
	for _, i := range items {
		out = append(out, i.(string))
	}
	return out
}

// Names of two installations in one cluster never meet, and bindings refer to the roles of their own.
func TestInstallationsWithASuffix(t *testing.T) {
	objects, err := Objects(Options{PodNamespace: "run-1", Namespace: "run-1", Suffix: "-run-1"})
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, o := range objects {
		names[o.GetName()] = true
	}
	for _, o := range objects {
		if o.GetKind() != "ServiceAccount" && !strings.HasSuffix(o.GetName(), "-run-1") || o.GetKind() == "Namespace" {
			t.Errorf("%s %s belongs to every installation", o.GetKind(), o.GetName())
		}
		if o.GetNamespace() != "" && o.GetNamespace() != "run-1" {
			t.Errorf("%s %s is in namespace %s", o.GetKind(), o.GetName(), o.GetNamespace())
		}
		for _, reference := range [][]string{{"roleRef", "name"}, {"spec", "policyName"}, {"spec", "priorityLevelConfiguration", "name"}} {
			if name, found, _ := unstructured.NestedString(o.Object, reference...); found && !names[name] {
				t.Errorf("%s %s refers to %s, which is none of the objects", o.GetKind(), o.GetName(), name)
			}
		}
	}
}

// TestObserverOnlyReads: whatever kmsharness observe is given, it can change nothing.
func TestObserverOnlyReads(t *testing.T) {
	text, err := Render("observe-job.yaml", Options{})
	if err != nil {
		t.Fatal(err)
	}
	objects, err := Decode(text)
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, o := range objects {
		for _, rule := range rules(o) {
			found++
			for _, verb := range stringsOf(rule["verbs"]) {
				if !slices.Contains([]string{"get", "list", "watch"}, verb) {
					t.Errorf("%s %s may %s", o.GetKind(), o.GetName(), verb)
				}
			}
		}
	}
	if found < 5 {
		t.Errorf("%d rules", found)
	}
}
