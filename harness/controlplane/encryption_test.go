package controlplane_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/harness/controlplane"
)

func plugin(keyID string, timeout time.Duration) controlplane.Provider {
	return controlplane.KMS(controlplane.KMSProvider{KeyID: keyID, Socket: "/run/kms-" + keyID + ".sock", Timeout: timeout})
}

func key(cipher controlplane.Cipher, keyID string, size int) controlplane.Provider {
	return controlplane.Key(controlplane.KeyProvider{Cipher: cipher, KeyID: keyID, Secret: bytes.Repeat([]byte("k"), size)})
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
		{"KMS", of(plugin("2", 0), plugin("1", 10*time.Second), controlplane.Identity()), []string{
			"apiVersion: v2", "endpoint: unix:///run/kms-2.sock", "name: kms-2", "name: kms-1", "timeout: 10s", "identity: {}", "- secrets"}},
		{"switched off", controlplane.Encryption{Providers: []controlplane.Provider{controlplane.Identity(), plugin("2", 0)}, Resources: []string{"configmaps"}}, []string{
			"identity: {}", "name: kms-2", "- configmaps"}},
		{"keys between", of(key(controlplane.AESCBC, "3", 32), plugin("2", 0), key(controlplane.AESGCM, "1", 32), controlplane.Identity()), []string{
			"aescbc:", "name: \"3\"", secret, "name: kms-2", "aesgcm:", "name: \"1\"", secret, "identity: {}"}},
	} {
		if err := test.encryption.Validate(); err != nil {
			t.Errorf("%s: %v", test.name, err)
		}
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

// What is refused here, a running API server would ignore without a word, or nobody could tell apart. No message has the key.
func TestEncryptionThatNoAPIServerTakes(t *testing.T) {
	for want, e := range map[string]controlplane.Encryption{
		"kms-1 is there twice":            {Providers: []controlplane.Provider{plugin("1", 0), plugin("1", 0)}},
		"aescbc-1 is there twice":         {Providers: []controlplane.Provider{key("aescbc", "1", 32), key("aescbc", "1", 32)}},
		"identity is there twice":         {Providers: []controlplane.Provider{controlplane.Identity(), controlplane.Identity()}},
		"expected no colon":               {Providers: []controlplane.Provider{plugin("a:b", 0)}},
		"expected one without a colon":    {Providers: []controlplane.Provider{key("aesgcm", "a:b", 32)}},
		"has no keyID":                    {Providers: []controlplane.Provider{plugin("", 0)}},
		"the timeout is -1s":              {Providers: []controlplane.Provider{plugin("1", -time.Second)}},
		"has 16 bytes, expected 32":       {Providers: []controlplane.Provider{key("aesgcm", "1", 16)}},
		"cipher \"secretbox\"":            {Providers: []controlplane.Provider{key("secretbox", "1", 32)}},
		"is a plugin and a key":           {Providers: []controlplane.Provider{{KMS: &controlplane.KMSProvider{KeyID: "1"}, Key: &controlplane.KeyProvider{}}}},
		"expected no wildcard":            {Resources: []string{"*.*"}},
		"plural in small letters":         {Resources: []string{"Secrets"}},
		"kube-apiserver does not encrypt": {Resources: []string{"events"}},
	} {
		if err := e.Validate(); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "kkk") {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
