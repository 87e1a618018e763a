package controlplane_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/kmsharness/kmsharness/harness/controlplane"
)

func plugin(keyID string) controlplane.Provider {
	return controlplane.KMS(controlplane.KMSProvider{KeyID: keyID, Socket: "/run/kms-" + keyID + ".sock"})
}

func key(cipher controlplane.Cipher, keyID string) controlplane.Provider {
	return controlplane.Key(controlplane.KeyProvider{Cipher: cipher, KeyID: keyID, Secret: bytes.Repeat([]byte("k"), controlplane.KeyBytes)})
}

func TestEncryptionYAML(t *testing.T) {
	const secret = "secret: a2tra2tra2tra2tra2tra2tra2tra2tra2tra2tra2s="
	of := func(p ...controlplane.Provider) controlplane.Encryption { return controlplane.Encryption{Providers: p} }
	for _, test := range []struct {
		name       string
		encryption controlplane.Encryption
		want       []string // in this order
	}{
		{"none", controlplane.Encryption{}, []string{"identity: {}", "- secrets"}},
		{"KMS", of(plugin("2"), plugin("1"), controlplane.Identity()), []string{
			"apiVersion: v2", "endpoint: unix:///run/kms-2.sock", "name: kms-2", "name: kms-1", "identity: {}", "- secrets"}},
		{"switched off", controlplane.Encryption{Providers: []controlplane.Provider{controlplane.Identity(), plugin("2")}, Resources: []string{"configmaps"}}, []string{
			"identity: {}", "name: kms-2", "- configmaps"}},
		{"keys between", of(key(controlplane.AESCBC, "3"), plugin("2"), key(controlplane.AESGCM, "1"), controlplane.Identity()), []string{
			"aescbc:", "name: \"3\"", secret, "name: kms-2", "aesgcm:", "name: \"1\"", secret, "identity: {}"}},
	} {
		text, err := test.encryption.YAML()
		if err != nil {
			t.Fatal(err)
		}
		rest := string(text)
		for _, want := range test.want {
			_, after, found := strings.Cut(rest, want)
			if !found {
				t.Fatalf("%s: expected %q in this order in\n%s", test.name, test.want, text)
			}
			rest = after
		}
	}
}
