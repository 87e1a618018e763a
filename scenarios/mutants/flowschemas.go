package mutants

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kmsharness/kmsharness/contract"
)

// flowSchemas are clusters whose API servers are set up wrongly for a flood of requests (ci/manifests/flow-control.yaml). That requests are queued by
// user the test of the manifests shows: in a scenario, a reporter tries again until it finds a place.
func flowSchemas() []Mutant {
	const scenario = "reporter-floods"
	return []Mutant{
		{
			Name: "flow-schema-of-nobody", Scenario: scenario, Caught: []string{"steps[0]"},
			Mistake: "a flow schema for a group that no reporter is in: reporters share the requests of all other users",
			Manifest: flowSchema(func(spec map[string]any) {
				_ = unstructured.SetNestedField(subjectOf(spec), "kms-health-reporters", "group", "name")
			}),
		},
	}
}

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

// flowSchema changes the spec of the reporters' flow schema.
func flowSchema(change func(spec map[string]any)) func(*unstructured.Unstructured) {
	return func(o *unstructured.Unstructured) {
		if spec, ok := o.Object["spec"].(map[string]any); ok && o.GetKind() == "FlowSchema" && o.GetName() == contract.ReporterFlows {
			change(spec)
		}
	}
}

// subjectOf is the first subject of a flow schema: the group of reporters.
func subjectOf(spec map[string]any) map[string]any {
	for _, list := range []string{"rules", "subjects"} {
		if items, ok := spec[list].([]any); ok && len(items) > 0 {
			spec, _ = items[0].(map[string]any)
		}
	}
	return spec
}
