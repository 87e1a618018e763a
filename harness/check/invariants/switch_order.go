package invariants

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/kmsharness/kmsharness/harness/check/facts"
	"github.com/kmsharness/kmsharness/harness/check/span"
	"github.com/kmsharness/kmsharness/harness/history"
)

// The order is that of the Kubernetes documentation for rotating a key: add it for reading on all API servers, write
// with it, rewrite all objects, remove the old one. Any shortcut makes objects unreadable for some API server.
func judgeSwitchOrder(v *facts.Facts) (f Finding) {
	k := newKeepers(v)
	for e := range v.Each(keeperKinds(history.KindProcess, history.KindContainer)...) {
		switch {
		case e.Kind == history.KindEncryption && e.Encryption.State == history.EncryptionConfigured && k.judgeable(e.Encryption.Node):
			k.judgeConfigured(&f, e)
		case e.Kind == history.KindEncryption && e.Encryption.State == history.EncryptionMigrated:
			k.judgeMigrated(&f, e)
		case e.Kind == history.KindProcess && e.Process.Role == history.RolePlugin && e.Process.State == history.ProcessStopped:
			k.judgeStopped(&f, e)
		case facts.Revised(e) && k.judgeable(e.Container.Node):
			k.judgeRevised(&f, e)
		}
		k.apply(e)
	}
	return f
}

// judgeMigrated judges the end of a migration. An API server that still writes with another provider leaves objects
// under that, and the removal of its key would lose them.
func (k *keepers) judgeMigrated(f *Finding, e *history.Event) {
	if len(e.Encryption.Providers) == 0 {
		return
	}
	f.JudgedAt(e.At, e.At)
	writer := e.Encryption.Providers[0]
	for _, n := range k.nodes() {
		if has := k.has(n, e.At); len(has) > 0 && has[0] != writer {
			f.Violate(Violation{Rule: "migrated", At: e.At, Seq: e.Seq, Node: n, Seen: "every object was said to be written anew under " + writer + " while the API server of " + n + " wrote with " + has[0],
				Allowed: "after all API servers write with " + writer})
			return
		}
	}
}

// judgeConfigured judges a new configuration by what the others have loaded, and by what may lie in etcd. What the
// others were configured with does not count: an API server that has not reloaded cannot read what this one writes.
func (k *keepers) judgeConfigured(f *Finding, e *history.Event) {
	x := e.Encryption
	if len(x.Providers) == 0 {
		return
	}
	f.JudgedAt(e.At, e.At)
	bad := func(rule, seen, allowed string) {
		f.Violate(Violation{Rule: rule, At: e.At, Seq: e.Seq, Node: x.Node, Seen: "the API server of " + x.Node + " was told " + seen, Allowed: allowed})
	}
	for i, p := range x.Providers {
		if slices.Contains(x.Providers[:i], p) {
			bad("", "two providers with the name "+p, "one name for each: it is the prefix of what a provider has stored, and leads to the first of them")
			return
		}
	}
	writer := x.Providers[0]
	for _, n := range k.nodes() {
		if reads := k.has(n, e.At); n != x.Node && !slices.Contains(reads, writer) {
			bad("read-first", "to write with "+writer, "after that of "+n+" has loaded it for reading; it has "+strings.Join(reads, ", "))
			return
		}
	}
	for _, p := range slices.Sorted(maps.Keys(k.left)) {
		if !slices.Contains(x.Providers, p) {
			bad("kept", strings.Join(x.Providers, ", ")+", without "+p, "after every object was written anew: some may lie under "+p)
			return
		}
	}
}

// judgeStopped judges the end of a plugin in a switch. What a scenario does to plugins itself is its own business. A pod takes its plugins with it: the next
// one is judged.
func (k *keepers) judgeStopped(f *Finding, e *history.Event) {
	v, p := k.Facts, e.Process
	operated, ends := v.Run.Lifecycle == history.LifecycleOperator, slices.Contains(k.ends, p.Node)
	again := v.Processes.While(facts.Process{Role: p.Role, Node: p.Node, KeyID: p.KeyID}, facts.Up, facts.Starting).Overlaps(span.New(e.At, e.At.Add(v.Interval+v.Tolerance)))
	switch {
	case !k.expected[p.Node] || v.Revisions[p.Node].Contains(e.At) || v.Actions.UnderWay(e.At, facts.Action.Ends):
		return
	case !operated && !v.Actions.UnderWay(e.At, func(a facts.Action) bool { return a.Verb == "encryption" }): // an operator may switch at any time
		return
	case operated && !ends && again: // with other settings for the same key it keeps its place
		return
	}
	f.JudgedAt(e.At, e.At)
	at := Violation{At: e.At, Seq: e.Seq, Node: p.Node, KeyID: p.KeyID}
	if operated && !ends { // one that is started again in time keeps its place
		at.Timed, at.From, at.To = true, e.At, e.At.Add(v.Interval+v.Tolerance)
	}
	needs := k.has(p.Node, e.At)
	if slices.ContainsFunc(needs, func(provider string) bool { return pluginOf(provider) == p.KeyID }) {
		at.Seen, at.Allowed = "the plugin was stopped", "after the API server of its node has loaded a configuration without it; it has "+strings.Join(needs, ", ")
		f.Violate(at)
		return
	}
	if reportsStill(v, facts.PluginID{Node: p.Node, KeyID: p.KeyID}, e.At) {
		at.Seen, at.Allowed = "the plugin was stopped while the reporter of its node asked it", "after the reporter has ended, or has been started again without it"
		f.Violate(at)
	}
}

// judgeRevised judges a pod that was replaced: a plugin that its API server needs runs in it, unless the scenario has ended it.
func (k *keepers) judgeRevised(f *Finding, e *history.Event) {
	node := e.Container.Node
	if k.Actions.UnderWay(e.At, facts.Action.Ends) {
		return
	}
	f.JudgedAt(e.At, e.At)
	for _, provider := range k.configured[node] {
		keyID := pluginOf(provider)
		if keyID != "" && !k.Processes.Runs(facts.Process{Role: history.RolePlugin, Node: node, KeyID: keyID}, e.At) {
			f.Violate(Violation{At: e.At, Seq: e.Seq, Node: node, KeyID: keyID, Seen: fmt.Sprintf("revision %d of the pod has no plugin that runs for %s", e.Container.Revision, provider),
				Allowed: "a plugin for every provider of its API server's configuration"})
			return
		}
	}
}

// reportsStill reports whether the reporter of a node has not been stopped since its plugin was last expected: its flags
// then still have the socket, and it would report an error for a plugin that ended as planned.
func reportsStill(v *facts.Facts, p facts.PluginID, at time.Time) bool {
	reporter := facts.Reporter(p.Node)
	var since time.Time
	for _, x := range v.Expectations.Plugin(p) {
		if x.Contains(at) {
			return v.Processes.Runs(reporter, at)
		}
		if !x.To.After(at) {
			since = x.To
		}
	}
	stopped := func(s facts.ProcessState) bool {
		return s.Activity == facts.Down && !s.From.Before(since) && !s.From.After(at)
	}
	return !since.IsZero() && !slices.ContainsFunc(v.Processes.States[reporter], stopped) && v.Processes.While(reporter, facts.Up).Contains(at)
}
