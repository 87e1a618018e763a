package invariants

import (
	"testing"

	"github.com/kmsharness/kmsharness/harness/check/facts"
	"github.com/kmsharness/kmsharness/harness/history"
)

// A plugin has the number in the provider's name; clear text and ciphers have none.
func TestPluginOf(t *testing.T) {
	for provider, want := range map[string]string{"kms-2": "2", "identity": "", "aescbc-1": ""} {
		if got := pluginOf(provider); got != want {
			t.Errorf("%s: %q, want %q", provider, got, want)
		}
	}
}

// What a node was told goes with it: the one that takes over its name is judged by what it is told itself.
func TestKeepersForgetNodesThatLeave(t *testing.T) {
	k := newKeepers(facts.New(nil))
	expect := func(names ...string) {
		var nodes []history.ExpectedNode
		for _, n := range names {
			nodes = append(nodes, history.ExpectedNode{Name: n})
		}
		k.expect(nodes)
	}
	expect("cp-1", "cp-2")
	if k.judgeable("cp-2") {
		t.Error("what it begins with is judged")
	}
	k.encryption(&history.Encryption{Node: "cp-2", State: history.EncryptionConfigured, Providers: []string{"kms-1"}})
	k.encryption(&history.Encryption{Node: "cp-2", State: history.EncryptionLoaded, Providers: []string{"kms-1"}})
	expect("cp-1")
	expect("cp-1", "cp-2")
	if len(k.configured["cp-2"])+len(k.loaded["cp-2"]) > 0 || !k.judgeable("cp-2") {
		t.Errorf("told %v, loaded %v, judged %v", k.configured, k.loaded, k.judgeable("cp-2"))
	}
}
