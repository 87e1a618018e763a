package check

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kmsharness/kmsharness/harness/history"
)

// keepers is what the history has told so far of who can read what: the configurations of the API servers of expected nodes, and
// under which providers objects may lie.
type keepers struct {
	expected   map[string]bool
	first      map[string]bool     // nodes that were there from the beginning, and still are; nil before it
	configured map[string][]string // by node, the writer first
	loaded     map[string][]string
	left       map[string]bool // providers that have written since every object was written anew
	migrated   string          // the provider of that; empty if another has written since
	ends       []string        // nodes on which the operator is about to end plugins for good
	keys       map[string]bool // that an operator has; nil: it has not said, or there is none
}

func newKeepers() *keepers {
	return &keepers{expected: map[string]bool{}, configured: map[string][]string{}, loaded: map[string][]string{}, left: map[string]bool{}}
}

// apply follows an event.
func (k *keepers) apply(e *history.Event) {
	switch e.Kind {
	case history.KindExpected:
		k.expect(e.Expected.Nodes)
	case history.KindEncryption:
		k.encryption(e.Encryption)
	case history.KindDecision:
		k.keys = map[string]bool{}
		for _, id := range e.Decision.Keys {
			k.keys[strconv.FormatUint(id, 10)] = true
		}
	}
}

// expect follows who is expected. What a node that leaves was told says nothing of one that takes over its name.
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

// judgeable says whether what a node is told can be judged: what those from the beginning are told first was in force before.
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

// pluginOf is the keyID that the plugin of a provider goes by; empty for a provider without one.
func pluginOf(provider string) string {
	keyID, ok := strings.CutPrefix(provider, "kms-")
	if !ok {
		return ""
	}
	return keyID
}

// nodes that have been told something and are expected, in order.
func (k *keepers) nodes() []string {
	return slices.DeleteFunc(sortedKeys(k.configured), func(n string) bool { return !k.expected[n] })
}

// judgeInventory: no object lies under a key that some API server does not have, and none was left out when every object was written
// anew.
func judgeInventory(v *Facts, f *Finding) {
	k := newKeepers()
	for n := range v.events {
		e := &v.events[n]
		k.apply(e)
		if e.Kind != history.KindStorageInventory {
			continue
		}
		f.JudgedAt(e.At, e.At)
		for _, u := range e.StorageInventory.Under {
			k.judgeUnder(f, e, u)
		}
	}
}

func (k *keepers) judgeUnder(f *Finding, e *history.Event, u history.Under) {
	lies := number(int64(u.Count)) + " objects lie under " + u.Provider + ", such as " + u.Example
	for _, n := range k.nodes() {
		if !slices.Contains(k.configured[n], u.Provider) {
			f.Violate(Violation{At: e.At, Seq: e.Seq, Node: n, Seen: lies, Allowed: "the providers that the API server of " + n + " was told: " + strings.Join(k.configured[n], ", ")})
			return
		}
	}
	if _, id, numbered := strings.Cut(u.Provider, "-"); numbered && k.keys != nil && !k.keys[id] {
		f.Violate(Violation{At: e.At, Seq: e.Seq, Seen: lies, Allowed: "the keys that the operator has kept: " + strings.Join(sortedKeys(k.keys), ", ")})
		return
	}
	if k.migrated != "" && u.Provider != k.migrated {
		f.Violate(Violation{At: e.At, Seq: e.Seq, Seen: lies, Allowed: k.migrated + " alone: every object was said to be written anew"})
	}
}

// deletedKEK is the last instant at which a scenario deleted a KEK: what lay under it is lost, and meant to be.
func deletedKEK(v *Facts) (at time.Time) {
	for _, a := range v.plugins.actions {
		if a.Verb == "kms" && a.param("op") == "delete" {
			at = latest(at, a.to)
		}
	}
	return at
}
