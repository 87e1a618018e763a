package plainoperator

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
)

func testPlugin() Plugin {
	var c configv1.KMSPluginConfig
	if err := json.Unmarshal([]byte(`{"type": "Vault", "vault": {"kmsPluginImage": "registry.example.com/vault@sha256:0", "vaultAddress": "https://vault.example.com",
		"vaultKeyPath": "transit/keys/one", "authentication": {"type": "AppRole", "appRole": {"secret": {"name": "approle"}}}}}`), &c); err != nil {
		panic(err)
	}
	return Plugin{Config: c, Credentials: map[string][]byte{"secret-approle_role-id": []byte("r"), "secret-approle_secret-id": []byte("s")}}
}

func testKeys(t *testing.T, modes ...Mode) (secrets []*corev1.Secret, keys []Key) {
	t.Helper()
	for i, m := range slices.Backward(modes) {
		s, err := KeySecret("c", i+1, m, slices.Repeat([]byte{byte(i + 1)}, 32), testPlugin(), "because")
		if err != nil {
			t.Fatal(err)
		}
		k, err := ReadKey(s)
		if err != nil {
			t.Fatal(err)
		}
		secrets, keys = append(secrets, s), append(keys, k)
	}
	return secrets, keys
}

// A key Secret is read as it was made, and has the fingerprint of the request.
func TestKeySecret(t *testing.T) {
	secrets, keys := testKeys(t, AESCBC, KMS)
	want, err := Want(configv1.APIServerEncryption{Type: "KMS", KMS: testPlugin().Config}, testPlugin())
	if err != nil {
		t.Fatal(err)
	}
	if k := keys[0]; k.ID != 2 || k.Mode != KMS || k.Provider != want.Provider || k.Fingerprint != want.Fingerprint || len(want.Hash) != 8 {
		t.Errorf("key %+v of request %+v", k, want)
	}
	for _, r := range []string{"secrets", "configmaps", "secrets"} {
		if err := SetMigrated(secrets[0], r, "2026-01-01T00:00:00Z"); err != nil {
			t.Fatal(err)
		}
	}
	if k, err := ReadKey(secrets[0]); err != nil || !k.Done() || len(k.Migrated) != 2 {
		t.Errorf("migrated: %+v, %v", k, err)
	}
	if got := secrets[0].Annotations[migratedAnnotation]; got != `{"resources":[{"Group":"","Resource":"secrets"},{"Group":"","Resource":"configmaps"}]}` {
		t.Errorf("annotation %s", got)
	}
}

// Files of all layouts that a switch passes are read as they were rendered.
func TestFileIsReadAsItWasRendered(t *testing.T) {
	secrets, keys := testKeys(t, AESCBC, KMS, Identity, AESGCM, KMS)
	for _, l := range []Layout{
		{Write: 0, Keys: []int{1}}, {Write: 1, Keys: []int{1}}, {Write: 1, Keys: []int{2, 1}}, {Write: 2, Keys: []int{2, 1}}, {Write: 2, Keys: []int{3, 2}},
		{Write: 3, Keys: []int{3, 2}}, {Write: 3, Keys: []int{4, 3}}, {Write: 4, Keys: []int{4, 3}}, {Write: 4, Keys: []int{5, 4, 3, 2, 1}},
	} {
		l.Identity = true
		f := fingerprinted(File{Resources: map[string]Layout{"secrets": l, "configmaps": l}}, keys)
		data, err := New(Defect{}).Render(f, "c", secrets)
		if err != nil {
			t.Fatal(err)
		}
		got, err := ReadFile(data)
		if err != nil || !reflect.DeepEqual(got, f) {
			t.Errorf("%s\n got %+v, %v\nwant %+v", data[FileKey], got, err, f)
		}
	}
}

// The names in a file are those that OpenShift has.
func TestFileHasTheNamesOfOpenShift(t *testing.T) {
	secrets, keys := testKeys(t, KMS, Identity)
	l := Layout{Write: 1, Keys: []int{2, 1}, Identity: true}
	data, err := New(Defect{}).Render(fingerprinted(File{Resources: map[string]Layout{"secrets": l, "configmaps": l}}, keys), "c", secrets)
	if err != nil {
		t.Fatal(err)
	}
	text := string(data[FileKey])
	for _, part := range []string{
		`{"resources":["secrets"],"providers":[{"kms":{"apiVersion":"v2","name":"1_secrets","endpoint":"unix:///var/run/kmsplugin/kms-1.sock","timeout":"10s"}},{"identity":{}},{"aesgcm":{"keys":[{"name":"2","secret":"AAAAAAAAAAAAAAAAAAAAAA=="}]}}]}`,
		`"name":"1_configmaps"`,
	} {
		if !strings.Contains(text, part) {
			t.Errorf("%s\nexpected %s in it", text, part)
		}
	}
	for _, k := range []string{"kms-plugin-config-1", "kms-plugin-secret-approle_role-id-1", "kms-plugin-secret-approle_secret-id-1"} {
		if len(data[k]) == 0 {
			t.Errorf("data have no %s", k)
		}
	}
}
