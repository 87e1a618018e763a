package operator

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const vault = `{"kind":"APIServer","apiVersion":"config.openshift.io/v1","spec":{"encryption":{"kms":{"type":"Vault","vault":{
"kmsPluginImage":"registry.example.com/kms/plugin@sha256:0000000000000000000000000000000000000000000000000000000000000000","vaultAddress":"https://vault.example.com:8200",
"vaultKeyPath":"transit/keys/one","authentication":{"type":"AppRole","appRole":{"secret":{"name":"vault-approle"}}}}}}}}`

func secret(name string, data map[string]string) *corev1.Secret {
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "n"}, Data: map[string][]byte{}}
	for k, v := range data {
		s.Data[k] = []byte(v)
	}
	return s
}

// A configuration has the file and the plugins, the newest first.
func TestReadConfiguration(t *testing.T) {
	c, err := ReadConfiguration(secret("encryption-config-x", map[string]string{
		"encryption-config": "file", "kms-plugin-config-2": vault, "kms-plugin-config-10": vault, "kms-plugin-secret-vault-approle_role-id-2": "role"}))
	if err != nil || string(c.File) != "file" || len(c.Plugins) != 2 || c.Plugins[0].KeyID != 10 || c.Plugins[1].KeyID != 2 ||
		c.Plugins[1].Config.Settings()["vaultKeyPath"] != "transit/keys/one" {
		t.Fatalf("%+v, %v", c, err)
	}
	for _, test := range []struct {
		data map[string]string
		want string
	}{
		{map[string]string{}, "secret n/s: data[encryption-config] is missing"},
		{map[string]string{"encryption-config": "f", "kms-plugin-config-x": vault}, "data[kms-plugin-config-x]: expected kms-plugin-config-N"},
		{map[string]string{"encryption-config": "f", "kms-plugin-config-1": "7"}, "data[kms-plugin-config-1]: expected an APIServer object"},
		{map[string]string{"encryption-config": "f", "kms-plugin-config-1": `{"spec":{"encryption":{}}}`}, "data[kms-plugin-config-1]: "},
	} {
		if _, err := ReadConfiguration(secret("s", test.data)); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%v: error %v, expected %q", test.data, err, test.want)
		}
	}
}
