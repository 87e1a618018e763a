package config_test

import (
	"maps"
	"regexp"
	"strings"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	"pgregory.net/rapid"

	"github.com/kmsharness/kmsharness/operator/config"
)

func read(t rapid.TB, a *configv1.APIServer) config.Wanted {
	t.Helper()
	w, err := config.Read(a, config.Options{})
	if err != nil {
		t.Fatalf("%v", err)
	}
	return w
}

// TestHashOfWhatMatters: each setting of a provider changes the hash of the plugin, those that choose a key that of the key, too, and
// nothing else does.
func TestHashOfWhatMatters(t *testing.T) {
	before := read(t, vault())
	for name, c := range map[string]struct {
		change func(*configv1.APIServer)
		plugin bool
		key    bool
	}{
		"nothing":     {func(*configv1.APIServer) {}, false, false},
		"other parts": {func(a *configv1.APIServer) { a.Labels = map[string]string{"a": "b"}; a.Spec.ClientCA.Name = "x" }, false, false},
		"image":       {func(a *configv1.APIServer) { v(a).KMSPluginImage = strings.Replace(digest, "1", "2", 1) }, true, false},
		"credentials": {func(a *configv1.APIServer) { v(a).Authentication.AppRole.Secret.Name = "other" }, true, false},
		"CA":          {func(a *configv1.APIServer) { v(a).TLS.CABundle.Name = "ca" }, true, false},
		"address":     {func(a *configv1.APIServer) { v(a).VaultAddress = "https://other.example.com" }, true, true},
		"namespace":   {func(a *configv1.APIServer) { v(a).VaultNamespace = "team" }, true, true},
		"key":         {func(a *configv1.APIServer) { v(a).VaultKeyPath = "transit/keys/other" }, true, true},
	} {
		a := vault()
		c.change(a)
		after := read(t, a)
		if got := after.Hash() != before.Hash(); got != c.plugin {
			t.Errorf("%s: the plugin's hash changed: %v, expected %v", name, got, c.plugin)
		}
		if got := after.KeyHash() != before.KeyHash(); got != c.key {
			t.Errorf("%s: the key's hash changed: %v, expected %v", name, got, c.key)
		}
		if (after == before) != !c.plugin {
			t.Errorf("%s: equal is %v", name, after == before)
		}
	}
}

func v(a *configv1.APIServer) *configv1.VaultKMSPluginConfig { return &a.Spec.Encryption.KMS.Vault }

// TestHashIsKept: the hashes are in names of objects and sockets, so a new release must not change them.
func TestHashIsKept(t *testing.T) {
	if w := read(t, vault()); w.Hash() != "mogxxrwa" || w.KeyHash() != "xofxyz2p" {
		t.Errorf("%s %s", w.Hash(), w.KeyHash())
	}
	if w := read(t, typed("aescbc")); w.Hash() != "" || w.KeyHash() != "" {
		t.Errorf("%q %q, expected none without a plugin", w.Hash(), w.KeyHash())
	}
}

// TestHashForm: what sockets, the API and the order of fields ask of a hash.
func TestHashForm(t *testing.T) {
	form := regexp.MustCompile(`^[a-z2-7]{8}$`)
	rapid.Check(t, func(t *rapid.T) {
		section := map[string]any{"p11LibraryPath": "/p", "credentialsSecret": map[string]any{"name": "pin"}}
		section["keyLabel"] = rapid.StringN(1, 20, -1).Draw(t, "label")
		one, other := &configv1.APIServer{}, &configv1.APIServer{}
		if config.Annotate(one, "Thales", section) != nil || config.Annotate(other, "Thales", maps.Clone(section)) != nil {
			t.Fatal("not annotated")
		}
		a, b := read(t, one), read(t, other)
		if a.Hash() != b.Hash() || !form.MatchString(a.Hash()) || !strings.ContainsAny(a.Hash(), "abcdefghijklmnopqrstuvwxyz") {
			t.Fatalf("%q and %q", a.Hash(), b.Hash())
		}
	})
}

// FuzzAnnotation: whatever somebody writes there is read or is an error of one line.
func FuzzAnnotation(f *testing.F) {
	f.Add(`{"type":"AWS","aws":{"keyARN":"` + arn + `","region":"us-east-1"}}`)
	f.Add(`{"type":"Vault","vault":null}`)
	f.Fuzz(func(t *testing.T, text string) {
		a := &configv1.APIServer{}
		if err := config.Annotate(a, "GCP", nil); err != nil {
			t.Fatal(err)
		}
		a.Annotations[config.Annotation] = text
		w, err := config.Read(a, config.Options{})
		if (err == nil) == (w == config.Wanted{}) {
			t.Errorf("%+v, %v", w, err)
		}
		if err != nil && strings.ContainsAny(err.Error(), "\n\r") {
			t.Errorf("more than a line: %q", err)
		}
	})
}

// TestContent: the hash changes with the content of the credentials, and no key does; without all of them nothing is known.
func TestContent(t *testing.T) {
	w := read(t, vault())
	of := func(data string) config.Wanted {
		one := w
		one.KMS = w.KMS.WithContent(map[config.Reference]string{{Kind: "Secret", Name: w.KMS.Settings()["authentication.appRole.secret.name"]}: config.ContentHash(map[string][]byte{"secret-id": []byte(data)}),
			{Kind: "ConfigMap", Name: w.KMS.Settings()["tls.caBundle.name"]}: "ca"})
		return one
	}
	one, two := of("one"), of("two")
	if one.Hash() == two.Hash() || one.Hash() == w.Hash() || one != of("one") {
		t.Errorf("hashes %s and %s, %s without", one.Hash(), two.Hash(), w.Hash())
	}
	if one.KeyHash() != two.KeyHash() || one.KMS.WithoutContent() != w.KMS || strings.Contains(one.KMS.Content, "one") {
		t.Errorf("%+v, %+v", one, two)
	}
	if missing := w.KMS.WithContent(nil); missing.Content != "" {
		t.Errorf("content %q of what is not there", missing.Content)
	}
	if a, b := config.ContentHash(map[string][]byte{"a": []byte("b c")}), config.ContentHash(map[string][]byte{"a": []byte("b"), "c": nil}); a == b {
		t.Error("two contents have one hash")
	}
}
