package invariants

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kmsharness/kmsharness/harness/check/facts"
	"github.com/kmsharness/kmsharness/harness/history"
)

// keepers follows which API servers can read what, event by event: the configurations of the API servers of expected
// nodes, and under which providers objects may lie. Providers are named after the key, "kms-2" or "aescbc-1", the first
// of a configuration writes, and all read (EncryptionConfiguration in the Kubernetes documentation).
type keepers struct {
	*facts.Facts
	expected   map[string]bool
	first      map[string]bool     // nodes that were there from the beginning, and still are; nil before it
	configured map[string][]string // by node, the writer first
	loaded     map[string][]string
	left       map[string]bool // providers that have written since every object was written anew
	migrated   string          // the provider of that; empty if another has written since
	ends       []string        // nodes on which the operator is about to end plugins for good
	keys       map[string]bool // that an operator has; nil: it has not said, or there is none
}

func newKeepers(v *facts.Facts) *keepers {
	return &keepers{Facts: v, expected: map[string]bool{}, configured: map[string][]string{}, loaded: map[string][]string{}, left: map[string]bool{}}
}

// keeperKinds are the kinds of events that keepers follow, and others.
func keeperKinds(others ...history.Kind) []history.Kind {
	return append(others, history.KindExpected, history.KindEncryption, history.KindDecision, history.KindData)
}

// apply follows an event.
func (k *keepers) apply(e *history.Event) {
	switch e.Kind {
	case history.KindExpected:
		k.expect(e.Expected.Nodes)
	case history.KindEncryption:
		k.encryption(e.Encryption)
	case history.KindData:
		k.restored(e.Data)
	case history.KindDecision:
		k.ends, k.keys = e.Decision.Ends, map[string]bool{}
		for _, id := range e.Decision.Keys {
			k.keys[strconv.FormatUint(id, 10)] = true
		}
	}
}

// expect follows which nodes are expected. A node that comes back under the same name has a new disk, so what its
// predecessor had loaded does not count.
func (k *keepers) expect(nodes []history.ExpectedNode) {
	before := k.expected
	k.expected = map[string]bool{}
	for _, n := range nodes {
		k.expected[n.Name] = true
	}
	if k.first == nil {
		k.first = maps.Clone(k.expected)
	}
	for n := range before {
		if !k.expected[n] {
			delete(k.first, n)
			delete(k.configured, n)
			delete(k.loaded, n)
		}
	}
}

// judgeable reports whether the configuration of a node can be judged. The first one of a node that was there from the
// beginning was in force before the recording, whatever the others had.
func (k *keepers) judgeable(node string) bool {
	return len(k.configured[node]) > 0 || k.first != nil && !k.first[node]
}

func (k *keepers) encryption(x *history.Encryption) {
	if len(x.Providers) == 0 {
		return
	}
	writer := x.Providers[0]
	switch x.State {
	case history.EncryptionConfigured:
		k.configured[x.Node], k.left[writer] = x.Providers, true
		if writer != k.migrated {
			k.migrated = ""
		}
	case history.EncryptionLoaded:
		k.loaded[x.Node] = x.Providers
	case history.EncryptionMigrated:
		k.left, k.migrated = map[string]bool{writer: true}, writer
	}
}

// restored follows what a snapshot has brought back under an older provider.
func (k *keepers) restored(d *history.Data) {
	if d.Op != history.DataRestored || d.Provider == "" {
		return
	}
	k.left[d.Provider] = true
	if d.Provider != k.migrated {
		k.migrated = ""
	}
}

// pluginOf is the keyID that the plugin of a provider goes by; empty for a provider without one.
func pluginOf(provider string) string {
	keyID, isPlugin := strings.CutPrefix(provider, "kms-")
	if !isPlugin {
		return ""
	}
	return keyID
}

// nodes that have been told something and are expected, in order.
func (k *keepers) nodes() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(k.configured)), func(n string) bool { return !k.expected[n] })
}

// has returns the configuration that the API server of a node has loaded. kube-apiserver reloads the file some time
// after it was written. One that is down will read the newest file when it starts.
func (k *keepers) has(node string, at time.Time) []string {
	if k.Processes.Runs(facts.Process{Role: k.Processes.Encryptor(), Node: node}, at) {
		return k.loaded[node]
	}
	return k.configured[node]
}
