package store

import (
	"maps"
	"slices"
	"strings"
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

// Of the APIServer configuration the rules of texts are modelled. These are about which fields there are: nobody leaves out what they ask for.
func TestEveryRuleOfAConfigurationIsModelledOrNamed(t *testing.T) {
	list, err := crds.List(crds.TechPreview)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]bool{}
	for _, crd := range list {
		for _, v := range crd.Spec.Versions {
			if spec := v.Schema.OpenAPIV3Schema.Properties["spec"]; crd.Spec.Names.Kind == "APIServer" {
				collectRules(&spec, all)
			}
		}
	}
	want := append([]string{
		"has(oldSelf.tlsAdherence) ? has(self.tlsAdherence) : true",
		"has(self.type) && self.type == 'KMS' ?  has(self.kms) : !has(self.kms)",
		"self.type == 'AppRole' ? has(self.appRole) : !has(self.appRole)",
		"self.type == 'Vault' ? has(self.vault) : !has(self.vault)",
	}, slices.Collect(maps.Keys(specRules()))...)
	slices.Sort(want)
	if got := slices.Sorted(maps.Keys(all)); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// What an administrator may get wrong is refused, and what is right is not.
func TestRulesOfAConfiguration(t *testing.T) {
	address := func(v string) string {
		for text, holds := range specRules() {
			if about := strings.Contains(text, "URL") || strings.Contains(text, ".find("); about && !holds(v) {
				return text
			}
		}
		return ""
	}
	for _, good := range []string{"https://vault.example.com:8200", "https://vault.example.com/"} {
		if broken := address(good); broken != "" {
			t.Errorf("%s breaks %s", good, broken)
		}
	}
	for _, bad := range []string{"http://vault.example.com", "vault", "https://vault.example.com/x", "https://vault.example.com?x=1", "https://u@vault.example.com", "https://vault.example.com#x"} {
		if address(bad) == "" {
			t.Errorf("%s breaks no rule", bad)
		}
	}
	image := modelled(`(self.split('@')[0].matches('^([a-zA-Z0-9-]+\\.)+[a-zA-Z0-9-]+(:[0-9]{2,5})?(/[a-zA-Z0-9-_.]+)+$'))`)
	if !image("registry.example.com/kms/plugin@sha256:0") || image("registry/kms@sha256:0") {
		t.Error("an image is the name of a host with a dot, and a path")
	}
}
