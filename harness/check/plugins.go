package check

import (
	"slices"
	"sort"
	"time"

	"github.com/kmsharness/kmsharness/harness/history"
)

// pluginTruth is how a plugin was, as far as its journal, its process and the engine's actions tell. What is in
// neither bad nor good is unknown.
type pluginTruth struct {
	plugin
	probes []probe     // Status calls by their beginning
	ended  []time.Time // memo: when all calls up to this one had ended
	bad    []badRun
	good   spans
	// opaque is when faults were in force that the journal cannot show: a call that never arrives is not in it.
	opaque spans
	down   spans // the process did not run
	idle   spans // it did not run, or was not ready yet
}

// badRun is a time in which every probe that was or could be made failed.
type badRun struct {
	span                // from the first failure (or what caused it) to the last evidence of it
	seq       int64     // the event that began it
	recovered time.Time // when it was surely well again; zero if that was not seen
}

// evidence of how a plugin was: at an instant (a call began) or for a time (the process was down).
type evidence struct {
	span
	seq  int64
	good bool
	call bool
}

// pluginFacts are what plugins answered and what was done to them.
type pluginFacts struct {
	facts   *Facts
	all     map[plugin]*pluginTruth
	actions []action
}

func (pl *pluginFacts) read() {
	pl.all = map[plugin]*pluginTruth{}
	get := func(p plugin) *pluginTruth {
		if pl.all[p] == nil {
			pl.all[p] = &pluginTruth{plugin: p}
		}
		return pl.all[p]
	}
	for _, x := range pl.facts.expectations.all {
		for _, n := range x.nodes {
			for _, k := range n.KeyIDs {
				get(plugin{n.Name, k})
			}
		}
	}
	for _, k := range pl.facts.processes.ofRole(history.RolePlugin) {
		get(plugin{k.node, k.keyID})
	}
	for n := range pl.facts.events {
		e := &pl.facts.events[n]
		if e.Kind == history.KindCall && e.Call.Method == "Status" {
			t := get(plugin{e.Call.Node, e.Call.KeyID})
			p := readProbe(e.Call, e.Seq, pl.facts.run.Timing.ProbeTimeout, pl.facts.tolerance())
			p.surely = p.surely && (p.bySource == 0 || !pl.facts.run.SourceOnly)
			t.probes = append(t.probes, p)
		}
	}
	for _, t := range pl.all {
		pl.settle(t)
	}
}

func (pl *pluginFacts) settle(t *pluginTruth) {
	slices.SortStableFunc(t.probes, func(a, b probe) int { return a.Began.Compare(b.Began) })
	proc := process{role: history.RolePlugin, node: t.node, keyID: t.keyID}
	t.down = pl.facts.processes.in(proc, procDown, procPaused)
	t.idle = pl.facts.processes.in(proc, procDown, procPaused, procStarting)
	if len(pl.facts.processes.procs[proc]) == 0 && len(t.probes) == 0 { // never there
		t.down = pl.facts.able.reporter(t.node).and(pl.facts.expectations.ofPlugin(t.plugin))
		t.idle = t.down
	}
	t.opaque = pl.opaqueFaults(t).or(pl.open(t))
	pl.assess(t, pl.evidenceOf(t), pl.repairs(t.plugin), pl.blows(t.plugin))
}

// open is when the sources leave open how the plugin was: from an answer that only a house rule judges until the next one that tells.
func (pl *pluginFacts) open(t *pluginTruth) spans {
	var out []span
	for i, p := range t.probes {
		if p.bySource == 0 || p.surely {
			continue
		}
		until := pl.facts.complete.to
		for _, next := range t.probes[i+1:] {
			if next.good() || next.bad() {
				until = next.Began
				break
			}
		}
		out = append(out, span{p.Began, until})
	}
	return merged(out)
}

// opaqueFaults are the faults of which no journalled call tells.
func (pl *pluginFacts) opaqueFaults(t *pluginTruth) spans {
	shown := map[string]bool{}
	for _, p := range t.probes {
		for _, f := range p.Faults {
			shown[f] = true
		}
	}
	var out []span
	for _, f := range pl.faultsOn(t.plugin) {
		if !shown[f.name] {
			out = append(out, f.span)
		}
	}
	return merged(out)
}

func (pl *pluginFacts) evidenceOf(t *pluginTruth) []evidence {
	var out []evidence
	for _, p := range t.probes {
		if p.good() || p.bad() {
			out = append(out, evidence{span{p.Began, p.Ended}, p.seq, p.good(), true})
		}
	}
	for _, d := range t.down {
		if d.to.Before(pl.facts.complete.to) { // the process may have answered a little before that was recorded
			d.to = latest(d.from, d.to.Add(-pl.facts.tolerance()))
		}
		out = append(out, evidence{d, pl.facts.processes.pluginSeq(t.plugin, d.from), false, false})
	}
	for _, s := range pl.unreached(t) {
		out = append(out, evidence{span: s})
	}
	slices.SortStableFunc(out, func(a, b evidence) int { return a.from.Compare(b.from) })
	return out
}

// unreached is when an opaque fault was in force, the reporter could probe, and yet no call arrived for longer than
// it may wait between two.
func (pl *pluginFacts) unreached(t *pluginTruth) spans {
	var calls []span
	for _, p := range t.probes {
		calls = append(calls, span{p.Began, p.Ended.Add(pl.facts.run.Timing.CadenceMax() + pl.facts.tolerance())})
	}
	return t.opaque.and(pl.facts.able.reporter(t.node)).settled(pl.facts.run.Timing.CadenceMax() + pl.facts.tolerance()).and(merged(calls).not(pl.facts.complete))
}

func (ps *processFacts) pluginSeq(p plugin, at time.Time) int64 {
	for _, c := range ps.procs[process{role: history.RolePlugin, node: p.node, keyID: p.keyID}] {
		if c.at.Equal(at) {
			return c.seq
		}
	}
	return 0
}

// repairs are the instants at which something was done that may have mended p, in order.
func (pl *pluginFacts) repairs(p plugin) []time.Time {
	var out []time.Time
	for _, a := range pl.actions {
		if a.Verb == "release" && a.on(p) {
			out = append(out, a.to)
		}
	}
	for _, c := range pl.facts.processes.procs[process{role: history.RolePlugin, node: p.node, keyID: p.keyID}] {
		if c.state == procUp {
			out = append(out, c.at)
		}
	}
	slices.SortFunc(out, time.Time.Compare)
	return out
}

// blows are the instants at which a fault had been injected, in order.
func (pl *pluginFacts) blows(p plugin) []time.Time {
	var out []time.Time
	for _, a := range pl.actions {
		if a.Verb == "inject" && a.done && a.on(p) {
			out = append(out, a.to)
		}
	}
	return out
}

// lastIn is the last of times in (after, until], else fallback.
func lastIn(times []time.Time, after, until, fallback time.Time) time.Time {
	i := sort.Search(len(times), func(i int) bool { return times[i].After(until) }) - 1
	if i >= 0 && times[i].After(after) {
		return times[i]
	}
	return fallback
}

// assess turns evidence into times in which the plugin was surely bad or surely good.
func (pl *pluginFacts) assess(t *pluginTruth, all []evidence, repairs, blows []time.Time) {
	var good []span
	var bad *badRun
	var run span // the good run so far; zero when there is none
	for _, e := range all {
		if !e.good {
			if !run.from.IsZero() {
				good, run = append(good, run), span{run.to, run.to}
			}
			if bad == nil {
				from := e.from
				if e.call {
					from = lastIn(blows, run.to, e.from, e.from)
				}
				t.bad = append(t.bad, badRun{span: span{from, e.from}, seq: e.seq})
				bad = &t.bad[len(t.bad)-1]
			}
			until := e.from
			if !e.call {
				until = e.to
			}
			bad.to, run = latest(bad.to, until), span{}
			continue
		}
		switch {
		case bad != nil:
			bad.recovered = lastIn(repairs, bad.to, e.from, e.from)
			run = span{bad.recovered, e.to}
			bad = nil
		case run.from.IsZero():
			run = e.span
		case pl.lost(t, span{run.to, e.from}):
			good, run = append(good, run), e.span
		default:
			run.to = latest(run.to, e.to)
		}
	}
	if !run.from.IsZero() {
		good = append(good, run)
	}
	t.good = merged(good).and(t.opaque.or(t.idle).not(pl.facts.complete))
}

// lost says whether a gap between two good calls is too long to know what was in it.
func (pl *pluginFacts) lost(t *pluginTruth, gap span) bool {
	known := len(pl.facts.processes.procs[process{role: history.RolePlugin, node: t.node, keyID: t.keyID}]) > 0
	return !known && gap.length() > pl.facts.run.Timing.CadenceMax()+pl.facts.tolerance()
}

// sortedPlugins is every plugin of the run by name.
func (pl *pluginFacts) sorted() []*pluginTruth {
	out := make([]*pluginTruth, 0, len(pl.all))
	for _, t := range pl.all {
		out = append(out, t)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].String() < out[j].String() })
	return out
}
