package mutants

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// policies are clusters whose admission policy (ci/manifests/reporter-admission.yaml) is wrong.
func policies() []Mutant {
	return []Mutant{{
		Name: "admission-without-a-bound", Scenario: "reporter-may-not-fill-the-cr", Caught: []string{"steps[0]"},
		Mistake: "an admission policy without a bound of the texts, on a real API server",
		Manifest: func(o *unstructured.Unstructured) {
			if o.GetKind() != "ValidatingAdmissionPolicy" {
				return
			}
			all, _, _ := unstructured.NestedSlice(o.Object, "spec", "validations")
			all = slices.DeleteFunc(all, func(v any) bool {
				expression, _, _ := unstructured.NestedString(v.(map[string]any), "expression")
				return strings.Contains(expression, "size(bytes(")
			})
			_ = unstructured.SetNestedSlice(o.Object, all, "spec", "validations")
		},
	}}
}
