package store

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var apiServers = schema.GroupVersionResource{Group: "config.openshift.io", Version: "v1", Resource: "apiservers"}

// configuration is one that is right but for one setting of its Vault.
func configuration(t *testing.T, value string, at ...string) *unstructured.Unstructured {
	t.Helper()
	vault := object{"kmsPluginImage": "registry.example.com/kms/plugin@sha256:0000000000000000000000000000000000000000000000000000000000000000",
		"vaultAddress": "https://vault.example.com:8200", "vaultKeyPath": "transit/keys/one",
		"authentication": object{"type": "AppRole", "appRole": object{"secret": object{"name": "vault-approle"}}}}
	if err := unstructured.SetNestedField(vault, value, at...); err != nil {
		t.Fatal(err)
	}
	return &unstructured.Unstructured{Object: object{"apiVersion": "config.openshift.io/v1", "kind": "APIServer", "metadata": object{"name": "cluster"},
		"spec": object{"encryption": object{"type": "KMS", "kms": object{"type": "Vault", "vault": vault}}}}}
}

// setting is a value of one setting, and whether it may be.
type setting struct {
	good  bool
	value string
	at    []string
}

func settings() []setting {
	address, path, image := []string{"vaultAddress"}, []string{"vaultKeyPath"}, []string{"kmsPluginImage"}
	digest := "@sha256:0000000000000000000000000000000000000000000000000000000000000000"
	return []setting{
		{true, "https://other.example.com:8200", address}, {true, "https://other.example.com/", address},
		{false, "http://vault.example.com", address}, {false, "vault", address}, {false, "https://vault.example.com/x", address},
		{false, "https://vault.example.com?x=1", address}, {false, "https://u@vault.example.com", address}, {false, "https://vault.example.com#x", address},
		{true, "a/b/keys/one", path}, {false, "/transit/keys/one", path}, {false, "transit/keys/one/", path}, {false, "transit//keys/one", path},
		{false, "transit/../keys/one", path}, {false, "transit/keys/o ne", path}, {false, "transit/one", path},
		{true, "registry.example.com/kms/newer" + digest, image}, {false, "registry/kms" + digest, image}, {false, "registry.example.com/kms/plugin:v1", image},
		{false, "Not_A_Name", []string{"authentication", "appRole", "secret", "name"}},
		{true, "team-a", []string{"vaultNamespace"}}, {false, "team-a/", []string{"vaultNamespace"}}, {false, "root", []string{"vaultNamespace"}},
	}
}

// What an administrator may get wrong the store refuses, and nothing else.
func TestConfigurations(t *testing.T) {
	s := New(allTypes(t))
	for _, c := range settings() {
		_, err := s.Apply(start, apiServers, configuration(t, c.value, c.at...), ApplyOptions{Manager: "administrator", Force: true})
		if apierrors.IsInvalid(err) == c.good || c.good && err != nil {
			t.Errorf("%v %q: %v, expected good: %t", c.at, c.value, err, c.good)
		}
	}
}

// A real API server refuses the same.
func TestConfigurationEqualsAPIServer(t *testing.T) {
	client := realClient(t)
	for _, c := range settings() {
		_, err := client.Resource(apiServers).Apply(t.Context(), "cluster", configuration(t, c.value, c.at...), metav1.ApplyOptions{FieldManager: "administrator", Force: true})
		if apierrors.IsInvalid(err) == c.good || c.good && err != nil {
			t.Errorf("%v %q: %v, expected good: %t", c.at, c.value, err, c.good)
		}
	}
}
