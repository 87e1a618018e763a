package confirm_test

import (
	"bytes"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kmsharness/kmsharness/harness/controlplane"
)

// keyOf is a key that the API server itself holds.
func keyOf(cipher controlplane.Cipher, keyID string) controlplane.Provider {
	return controlplane.Key(controlplane.KeyProvider{Cipher: cipher, KeyID: keyID, Secret: bytes.Repeat([]byte(keyID), controlplane.KeyBytes)})
}

// touch writes a secret without a change, and says which version it has then.
func (n *node) touch(name string) string {
	n.t.Helper()
	s, err := n.admin.CoreV1().Secrets("default").Patch(n.t.Context(), name, types.MergePatchType, []byte(`{"metadata":{}}`), metav1.PatchOptions{})
	if err != nil {
		n.t.Fatal(err)
	}
	return s.ResourceVersion
}

// A write without a change encrypts an object anew, once, when another provider or key writes by then. What is encrypted with a key
// that is not there any more cannot be read, and says so in one of two ways.
func TestConfigurationWithKeys(t *testing.T) {
	_, nodes := newWorld(t, 500*time.Millisecond, nil)
	n := nodes[0]
	set := func(what string, ready func() bool, p ...controlplane.Provider) {
		t.Helper()
		if err := n.SetEncryption(controlplane.Encryption{Providers: p}); err != nil {
			t.Fatal(err)
		}
		n.says(what, time.Minute, "yes", func() string {
			if ready() {
				return "yes"
			}
			return "no"
		})
	}
	changes := func(name string) func() bool {
		before := n.touch(name)
		return func() bool { return n.touch(name) != before }
	}
	if err := n.write("old"); err != nil {
		t.Fatal(err)
	}
	cbc2, cbc3, gcm := keyOf(controlplane.AESCBC, "2"), keyOf(controlplane.AESCBC, "3"), keyOf(controlplane.AESGCM, "4")
	set("clear text that is encrypted", changes("old"), cbc2, controlplane.Identity())
	if once, twice := n.touch("old"), n.touch("old"); once != twice {
		t.Error("a second write without a change changed it")
	}
	set("another key of one cipher", changes("old"), cbc3, cbc2, controlplane.Identity())
	set("another cipher between two of one", changes("old"), gcm, cbc3, cbc2, controlplane.Identity())
	if err := n.write("new"); err != nil {
		t.Fatal(err)
	}
	set("back to the first of them", changes("old"), cbc2, gcm, cbc3, controlplane.Identity())

	gone := func(want string) func() bool {
		return func() bool { return bytes.Contains([]byte(text(n.read("old"))), []byte(want)) }
	}
	set("a key that has gone, beside another of its cipher", gone("no matching key was found for the provided AES transformer"), cbc3, gcm, controlplane.Identity())
	t.Logf("a read without its key: %v", n.read("old"))
	set("a cipher that has gone", gone("no matching prefix found"), gcm, controlplane.Identity())
	t.Logf("a read without its cipher: %v", n.read("old"))
	if err := n.read("new"); err != nil {
		t.Errorf("what lies under a key that is there: %v", err)
	}
}
