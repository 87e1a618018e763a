package mutants

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kmsharness/kmsharness/ci/crds"
	"github.com/kmsharness/kmsharness/harness/cluster/virtual"
)

// policies are clusters whose admission policy (ci/manifests/reporter-admission.yaml) is wrong.
func policies() []Mutant {
	return []Mutant{{
		Name: "admission-without-a-bound", Scenario: "reporter-may-not-fill-the-cr", Caught: []string{"steps[0]"},
		Mistake:  "an admission policy without a bound of the texts, on a real API server",
		Manifest: withoutRules("size(bytes("),
	}, {
		Name: "gate-forgotten", Scenario: "operator-kms-gate-off", Caught: []string{"steps[0]"}, Virtual: func() virtual.Options { return virtual.Options{CRDs: crds.TechPreview} },
		Mistake: "CRDs of a preview installed whatever the feature set: the API takes a configuration that nobody supports",
	}}
}

// admitting is a cluster with a manifest that was changed.
func admitting(change func(*unstructured.Unstructured)) func() virtual.Options {
	return func() virtual.Options { return virtual.Options{Manifest: change} }
}

// withoutRules leaves out what the policy demands with a part of an expression.
func withoutRules(part string) func(*unstructured.Unstructured) {
	return ofPolicy("validations", func(all []any) []any {
		return slices.DeleteFunc(all, func(v any) bool {
			expression, _, _ := unstructured.NestedString(v.(object), "expression")
			return strings.Contains(expression, part)
		})
	})
}

// ofPolicy changes a list of an admission policy.
func ofPolicy(list string, change func([]any) []any) func(*unstructured.Unstructured) {
	return func(o *unstructured.Unstructured) {
		if o.GetKind() == "ValidatingAdmissionPolicy" {
			all, _, _ := unstructured.NestedSlice(o.Object, "spec", list)
			_ = unstructured.SetNestedSlice(o.Object, change(all), "spec", list)
		}
	}
}

// forCertificates lets the policy be about reporters with a certificate, and not about those with a token.
func forCertificates() func(*unstructured.Unstructured) {
	return ofPolicy("matchConditions", each(func(c object) {
		text, _, _ := unstructured.NestedString(c, "expression")
		c["expression"], _, _ = strings.Cut(text, " || ")
	}))
}
