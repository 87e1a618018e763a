package live

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/kmsharness/kmsharness/harness/controlplane"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/operator/encryption"
)

// What API servers are told becomes a configuration that they take, in the same order.
func TestEncryptionConfig(t *testing.T) {
	key := encryption.Provider{Type: encryption.AESCBC, KeyID: "2"}
	configured := Plugins("1")
	configured.Providers = slices.Insert(configured.Providers, 0, key)
	configured.Keys = map[encryption.Provider][]byte{key: bytes.Repeat([]byte("k"), controlplane.KeyBytes)}
	c := configured.Config(func(keyID string) string { return "/run/kms-" + keyID + ".sock" })
	text, err := c.YAML()
	first, second, third := strings.Index(string(text), "aescbc"), strings.Index(string(text), "/run/kms-1.sock"), strings.Index(string(text), "identity")
	if err != nil || first < 0 || second < first || third < second {
		t.Errorf("%s %v", text, err)
	}
	configured.Keys = nil
	if _, err := configured.Config(func(string) string { return "/s" }).YAML(); err == nil {
		t.Errorf("a key that nobody made: %v", err)
	}
	if got := configured.PluginIDs(); !slices.Equal(got, []string{"1"}) {
		t.Error(got)
	}
}

// A census has one line for each key, with an example, and is refused by what nobody can read.
func TestCensus(t *testing.T) {
	counted := map[under]*history.Under{}
	page := []KeyValue{
		{[]byte("/registry/secrets/a/one"), sealed("kms-1", "kek-1")}, {[]byte("/registry/secrets/a/two"), sealed("kms-1", "kek-1")},
		{[]byte("/registry/secrets/b/three"), sealed("kms-1", "kek-2")}, {[]byte("/registry/secrets/b/four"), []byte("k8s:enc:aescbc:v1:2:x")},
		{[]byte("/registry/secrets/c/five"), []byte("k8s\x00clear")},
	}
	if err := count(counted, page); err != nil {
		t.Fatal(err)
	}
	want := []history.Under{
		{Provider: "aescbc-2", Count: 1, Example: "secrets/b/four"}, {Provider: "identity", Count: 1, Example: "secrets/c/five"},
		{Provider: "kms-1", KEKID: "kek-1", Count: 2, Example: "secrets/a/one"}, {Provider: "kms-1", KEKID: "kek-2", Count: 1, Example: "secrets/b/three"},
	}
	if got := sortedUnder(counted); !slices.Equal(got, want) {
		t.Errorf("%+v", got)
	}
	if err := count(counted, []KeyValue{{[]byte("/registry/secrets/a/bad"), []byte("k8s:enc:secretbox:v1:1:x")}}); err == nil {
		t.Error("a prefix that nobody knows was counted")
	}
	if got := prefixEnd("/registry/secrets/"); got != "/registry/secrets0" {
		t.Error(got)
	}
}
