package crds

import (
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
)

// The embedded copies are the module's files, byte for byte, and nothing else.
func TestCopiesEqualTheModule(t *testing.T) {
	dir := t.TempDir()
	if out, err := exec.CommandContext(t.Context(), "./copy.sh", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	want, got := read(t, dir), read(t, ".")
	for name, data := range want {
		if got[name] != data {
			t.Errorf("%s differs from the module's file: run go generate ./ci/crds", name)
		}
	}
	for name := range got {
		if _, ok := want[name]; !ok {
			t.Errorf("%s is not one of the module's files that are copied", name)
		}
	}
}

func read(t *testing.T, dir string) map[string]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.crd.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		out[filepath.Base(f)] = string(data)
	}
	return out
}

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

// TestReferring: settings are outside of the APIServer configuration, their schema is that of its section, and nothing else changes.
func TestReferring(t *testing.T) {
	list, err := WithKMS(VaultKMSConfig)
	if err != nil {
		t.Fatal(err)
	}
	plain, err := WithKMS(TechPreview)
	if err != nil {
		t.Fatal(err)
	}
	if len(list) != len(plain)+1 || list[len(plain)].Name != "vaultkmsconfigs.kms.openshift.io" {
		t.Fatalf("%d CRDs, want %d and that of VaultKMSConfig", len(list), len(plain))
	}
	for i, crd := range plain {
		if same := reflect.DeepEqual(crd, list[i]); same == (crd.Spec.Names.Plural == "apiservers") {
			t.Errorf("%s is unchanged: %v", crd.Name, same)
		}
	}
	settings := list[len(plain)].Spec.Versions[0].Schema.OpenAPIV3Schema
	if spec, status := settings.Properties["spec"], settings.Properties["status"]; len(spec.Properties["vaultKeyPath"].XValidations) == 0 || len(spec.Required) == 0 ||
		slices.Contains(spec.Required, "kmsPluginImage") || len(status.Properties["kmsPluginImage"].XValidations) == 0 {
		t.Errorf("%+v", settings)
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
