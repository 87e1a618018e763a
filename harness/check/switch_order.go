package check

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kmsharness/kmsharness/harness/history"
)

func switchOrder() Invariant {
	return Invariant{
		ID: "SWITCH-ORDER",
		Statement: "no API server is told to write with a provider that another cannot read, no two providers have one name, no provider goes while objects may lie under it, " +
			"nothing counts as migrated while an API server writes with another, and no plugin is stopped while an API server or a reporter needs it",
		Source: "Switching the encryption",
		Rules: []Rule{
			{Code: ruleReadFirst, Statement: "no API server is configured to write with a provider that another cannot read"},
			{Code: ruleKept, Statement: "no provider is taken out of a configuration while objects may lie under it"},
			{Code: ruleMigrated, Statement: "nothing counts as migrated while an API server writes with another provider"},
		},
		Timed: SomeTimed,
		Judge: judgeSwitchOrder,
	}
}

func judgeSwitchOrder(v *Facts) (f Finding) {
	k := newKeepers()
	for n := range v.events {
		e := &v.events[n]
		switch {
		case e.Kind == history.KindDecision:
			k.ends = e.Decision.Ends
		case e.Kind == history.KindEncryption && e.Encryption.State == history.EncryptionConfigured && k.judgeable(e.Encryption.Node):
			k.judgeConfigured(v, &f, e)
		case e.Kind == history.KindEncryption && e.Encryption.State == history.EncryptionMigrated:
			k.judgeMigrated(v, &f, e)
		case e.Kind == history.KindProcess && e.Process.Role == history.RolePlugin && e.Process.State == history.ProcessStopped:
			k.judgeStopped(v, &f, e)
		case revised(e) && k.judgeable(e.Container.Node):
			k.judgeRevised(v, &f, e)
		}
		k.apply(e)
	}
	return f
}

// has is the configuration that the API server of a node has loaded; of one that is down, the newest, which it will read.
func (k *keepers) has(v *Facts, node string, at time.Time) []string {
	if v.processes.up(process{role: encryptor(v), node: node}, at) {
		return k.loaded[node]
	}
	return k.configured[node]
}

// judgeMigrated judges the end of a migration: an API server that still writes with another provider leaves objects under that.
func (k *keepers) judgeMigrated(v *Facts, f *Finding, e *history.Event) {
	if len(e.Encryption.Providers) == 0 {
		return
	}
	f.JudgedAt(e.At, e.At)
	writer := e.Encryption.Providers[0]
	for _, n := range k.nodes() {
		if has := k.has(v, n, e.At); len(has) > 0 && has[0] != writer {
			f.Violate(Violation{Rule: ruleMigrated, At: e.At, Seq: e.Seq, Node: n, Seen: "every object was said to be written anew under " + writer + " while the API server of " + n + " wrote with " + has[0],
				Allowed: "after all API servers write with " + writer})
			return
		}
	}
}

// judgeConfigured judges a new configuration by what the others have loaded, and by what may lie in etcd.
func (k *keepers) judgeConfigured(v *Facts, f *Finding, e *history.Event) {
	x := e.Encryption
	if len(x.Providers) == 0 {
		return
	}
	f.JudgedAt(e.At, e.At)
	for i, p := range x.Providers {
		if slices.Contains(x.Providers[:i], p) {
			f.Violate(Violation{At: e.At, Seq: e.Seq, Node: x.Node, Seen: "the API server of " + x.Node + " was told two providers with the name " + p,
				Allowed: "one name for each: it is the prefix of what a provider has stored, and leads to the first of them"})
			return
		}
	}
	writer := x.Providers[0]
	for _, n := range k.nodes() {
		reads := k.has(v, n, e.At)
		if n != x.Node && !slices.Contains(reads, writer) {
			f.Violate(Violation{Rule: ruleReadFirst, At: e.At, Seq: e.Seq, Node: x.Node, Seen: "the API server of " + x.Node + " was told to write with " + writer,
				Allowed: "after that of " + n + " has loaded it for reading; it has " + strings.Join(reads, ", ")})
			return
		}
	}
	for _, p := range sortedKeys(k.left) {
		if !slices.Contains(x.Providers, p) {
			f.Violate(Violation{Rule: ruleKept, At: e.At, Seq: e.Seq, Node: x.Node, Seen: "the API server of " + x.Node + " was told " + strings.Join(x.Providers, ", ") + ", without " + p,
				Allowed: "after every object was written anew: some may lie under " + p})
			return
		}
	}
}

// judgeStopped judges the end of a plugin in a switch. What a scenario does to plugins itself is its own business.
func (k *keepers) judgeStopped(v *Facts, f *Finding, e *history.Event) {
	p := e.Process
	if v.processes.revising(p.Node).has(e.At) {
		return // with its pod: the next one is judged
	}
	if !switchedAt(v, e.At) || handled(v, e.At) || !k.expected[p.Node] || !slices.Contains(k.ends, p.Node) && v.processes.startedAnew(p, e.At) {
		return
	}
	f.JudgedAt(e.At, e.At)
	at := Violation{At: e.At, Seq: e.Seq, Node: p.Node, KeyID: p.KeyID}
	if v.run.Lifecycle == history.LifecycleOperator && !slices.Contains(k.ends, p.Node) { // one that is started again in time keeps its place
		at.timed, at.From, at.To = true, e.At, e.At.Add(v.interval()+v.tolerance())
	}
	needs := k.has(v, p.Node, e.At)
	if slices.ContainsFunc(needs, func(provider string) bool { return pluginOf(provider) == p.KeyID }) {
		at.Seen, at.Allowed = "the plugin was stopped", "after the API server of its node has loaded a configuration without it; it has "+strings.Join(needs, ", ")
		f.Violate(at)
		return
	}
	if reportsStill(v, plugin{p.Node, p.KeyID}, e.At) {
		at.Seen, at.Allowed = "the plugin was stopped while the reporter of its node asked it", "after the reporter has ended, or has been started again without it"
		f.Violate(at)
	}
}

// judgeRevised judges a pod that was replaced: a plugin that its API server needs runs in it, unless the scenario has ended it.
func (k *keepers) judgeRevised(v *Facts, f *Finding, e *history.Event) {
	node := e.Container.Node
	if handled(v, e.At) {
		return
	}
	f.JudgedAt(e.At, e.At)
	for _, provider := range k.configured[node] {
		keyID := pluginOf(provider)
		if keyID != "" && !v.processes.up(process{role: history.RolePlugin, node: node, keyID: keyID}, e.At) {
			f.Violate(Violation{At: e.At, Seq: e.Seq, Node: node, KeyID: keyID, Seen: fmt.Sprintf("revision %d of the pod has no plugin that runs for %s", e.Container.Revision, provider),
				Allowed: "a plugin for every provider of its API server's configuration"})
			return
		}
	}
}

// up says whether a process runs, or stands still, at an instant. One of which nothing is told does.
func (ps *processFacts) up(p process, at time.Time) bool {
	return len(ps.procs[p]) == 0 || ps.in(p, procUp, procPaused).has(at)
}

// switchedAt reports whether the encryption was being switched. An operator may do so at any time.
func switchedAt(v *Facts, at time.Time) bool {
	return v.run.Lifecycle == history.LifecycleOperator || slices.ContainsFunc(v.plugins.actions, func(a action) bool { return a.Verb == "encryption" && a.spans(at, v) })
}

// startedAnew says whether a plugin that was stopped runs again at once: with other settings for the same key, it keeps its place, unless the
// operator had decided to end it.
func (ps *processFacts) startedAnew(p *history.Process, at time.Time) bool {
	again := span{at, at.Add(ps.facts.interval() + ps.facts.tolerance())}
	return ps.facts.run.Lifecycle == history.LifecycleOperator && ps.in(process{role: history.RolePlugin, node: p.Node, keyID: p.KeyID}, procUp, procStarting).touches(again)
}

// handled says whether the scenario did something to processes or nodes meanwhile.
func handled(v *Facts, at time.Time) bool {
	return slices.ContainsFunc(v.plugins.actions, func(a action) bool {
		return slices.Contains([]string{"stop", "kill", "restart", "node"}, a.Verb) && a.spans(at, v)
	})
}

// spans says whether the action was under way.
func (a action) spans(at time.Time, v *Facts) bool {
	if !a.done && !a.failed {
		return !at.Before(a.from) // it never ended
	}
	return !at.Before(a.from) && !at.After(a.to.Add(v.tolerance()))
}

// reportsStill says whether the reporter of a node has not been stopped since its plugin was last expected.
func reportsStill(v *Facts, p plugin, at time.Time) bool {
	expected := v.expectations.ofPlugin(p).and(v.expectations.active())
	var since time.Time
	for _, x := range expected {
		if x.has(at) {
			return v.processes.up(process{role: history.RoleReporter, node: p.node}, at)
		}
		if !x.to.After(at) {
			since = x.to
		}
	}
	if since.IsZero() {
		return false
	}
	for _, c := range v.processes.procs[process{role: history.RoleReporter, node: p.node}] {
		if c.state == procDown && !c.at.Before(since) && !c.at.After(at) {
			return false
		}
	}
	return v.processes.in(process{role: history.RoleReporter, node: p.node}, procUp).has(at)
}
