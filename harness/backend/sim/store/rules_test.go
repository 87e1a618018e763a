package store

import (
	"maps"
	"slices"
	"testing"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/kmsharness/kmsharness/ci/crds"
)

// These rules of the statuses are not modelled, because nobody here writes what they are about.
func notModelled() []string {
	return []string{
		"has(self.currentRevision) || !has(oldSelf.currentRevision)",
		"oldSelf.hasValue() || !has(self.currentRevision)",
		"oldSelf.hasValue() || !has(self.targetRevision)",
		"self >= oldSelf",
		"self.matches('^[A-Za-z0-9_-]*={0,2}$')",
		"size(self.filter(status, status.?targetRevision.orValue(0) != 0)) <= 1",
	}
}

// A rule that a new version of the CRDs brings is seen here first.
func TestEveryRuleOfAStatusIsModelledOrNamed(t *testing.T) {
	list, err := crds.List(crds.TechPreview)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]bool{}
	for _, crd := range list {
		for _, v := range crd.Spec.Versions {
			status := v.Schema.OpenAPIV3Schema.Properties["status"]
			collectRules(&status, all)
		}
	}
	want := append(notModelled(), slices.Collect(maps.Keys(rules()))...)
	slices.Sort(want)
	if got := slices.Sorted(maps.Keys(all)); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func collectRules(s *apiextensions.JSONSchemaProps, into map[string]bool) {
	for _, r := range s.XValidations {
		into[r.Rule] = true
	}
	for _, p := range s.Properties {
		collectRules(&p, into)
	}
	if s.Items != nil && s.Items.Schema != nil {
		collectRules(s.Items.Schema, into)
	}
}
