package cluster

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kmsharness/kmsharness/harness/controlplane"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/operator/encryption"
)

// What goes into an object comes out of it, for every kind that an API server encrypts.
func TestEncryptedObjects(t *testing.T) {
	flunders := Encrypted{Resource: schema.GroupVersionResource{Group: "wardle.example.com", Version: "v1beta1", Resource: "flunders"}, Kind: "Flunder",
		Registry: "/oauth-apiserver/wardle.example.com/flunders/", Field: []string{"spec", "flunderReference"}, Spec: Object{"referenceType": "Flunder"}}
	for _, o := range []Encrypted{EncryptedSecrets(), flunders} {
		value := []byte{0, 1, 2, 255}
		u := o.Object("data-1", value)
		got, err := o.Value(u)
		if err != nil || !bytes.Equal(got, value) || u.GetName() != "data-1" || u.GetLabels()[DataLabel] != "true" || u.GetKind() != o.Kind {
			t.Errorf("%s: %x, %v of %v", o.Name(), got, err, u)
		}
		o.Object("data-2", []byte("x"))
		if len(o.Spec) > 1 {
			t.Errorf("what all have in common was changed: %v", o.Spec)
		}
	}
	if EncryptedSecrets().ObjectName("a") != "secrets/default/a" || flunders.ObjectName("a") != "flunders.wardle.example.com/default/a" {
		t.Error("objects have other names than their resources")
	}
}

// A node that loses its power takes the pods of further API servers along; the static pod does not.
func TestNodeHasThePartsOfFurtherAPIServers(t *testing.T) {
	n := &Node{Name: "cp-1", Alongside: []*Node{{Name: "cp-1", APIServer: history.OAuthAPIServer}}}
	for role, want := range map[string]int{history.RoleNode: 2, history.RolePod: 1} {
		if got := (&nodeUnit{role: role}).parts(n); len(got) != want || got[0].Identity.APIServer != "" || want > 1 && got[1].Identity.APIServer != history.OAuthAPIServer {
			t.Errorf("%s: %+v", role, got)
		}
	}
}

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
