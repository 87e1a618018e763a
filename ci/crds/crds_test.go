package crds

import (
	"reflect"
	"slices"
	"testing"
)

func TestListGivesEveryKindOnce(t *testing.T) {
	want := []string{
		"apiservers.config.openshift.io", "authentications.operator.openshift.io", "clusteroperators.config.openshift.io", "encryptionhealths.kmsharness.dev",
		"kubeapiservers.operator.openshift.io", "openshiftapiservers.operator.openshift.io",
	}
	for _, v := range []Variant{"", Default, TechPreview} {
		list, err := List(v)
		if err != nil {
			t.Fatalf("%q: %v", v, err)
		}
		var got []string
		for _, crd := range list {
			got = append(got, crd.Name)
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%q: got %v, want %v", v, got, want)
		}
	}
}

// TestWithKMS: KMS can be chosen with the operators' CRDs of any variant.
func TestWithKMS(t *testing.T) {
	for _, v := range []Variant{"", Default, TechPreview} {
		list, err := WithKMS(v)
		if err != nil {
			t.Fatalf("%q: %v", v, err)
		}
		plain, err := List(v)
		if err != nil {
			t.Fatal(err)
		}
		for i, crd := range list {
			if same := reflect.DeepEqual(crd, plain[i]); same == (v == Default && crd.Spec.Names.Plural == "apiservers") || crd.Name != plain[i].Name {
				t.Errorf("%q: %s is that of the variant: %v", v, crd.Name, same)
			}
		}
	}
}

func TestOnlyTechPreviewHasTypedReports(t *testing.T) {
	for v, want := range map[Variant]bool{Default: false, TechPreview: true} {
		list, err := List(v)
		if err != nil {
			t.Fatal(err)
		}
		for _, crd := range list {
			if crd.Spec.Names.Kind != "KubeAPIServer" {
				continue
			}
			status := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["status"]
			if _, got := status.Properties["encryptionStatus"]; got != want {
				t.Errorf("%s: encryptionStatus present is %v, want %v", v, got, want)
			}
		}
	}
}

func TestUnknownVariant(t *testing.T) {
	if _, err := List("OKD"); err == nil {
		t.Error("no error for a variant that is not embedded")
	}
}
