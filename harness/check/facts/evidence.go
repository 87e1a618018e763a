package facts

import (
	"cmp"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/kmsharness/kmsharness/harness/check/span"
	"github.com/kmsharness/kmsharness/harness/history"
)

// pluginReader reads how plugins were.
type pluginReader struct {
	log          *Log
	bounds       Bounds
	sourceOnly   bool // the run is judged by the sources alone
	actions      *Actions
	expectations Expectations
	processes    *Processes
	reporters    *Reporters
}

// read has all plugins that were ever expected, ran or were called.
func (r pluginReader) read() *Plugins {
	ps := &Plugins{clocks: r.reporters.clocks}
	get := func(id PluginID) *Plugin {
		t := ps.Of(id)
		if t == nil {
			t = &Plugin{PluginID: id}
			ps.All = append(ps.All, t)
		}
		return t
	}
	for _, x := range r.expectations {
		for _, n := range x.Nodes {
			for _, k := range n.KeyIDs {
				get(PluginID{n.Name, k})
			}
		}
	}
	for _, k := range r.processes.OfRole(history.RolePlugin) {
		get(PluginID{k.Node, k.KeyID})
	}
	for e := range r.log.Each(history.KindCall) {
		if e.Call.Method == "Status" {
			t := get(PluginID{e.Call.Node, e.Call.KeyID})
			p := readProbe(e.Call, e.Seq, r.bounds.ProbeTimeout, r.bounds.Tolerance)
			p.surely = p.surely && (p.BySource == 0 || !r.sourceOnly)
			t.Probes = append(t.Probes, p)
		}
	}
	slices.SortFunc(ps.All, func(a, b *Plugin) int { return cmp.Compare(a.String(), b.String()) })
	for _, t := range ps.All {
		r.readPlugin(t)
	}
	return ps
}

func (r pluginReader) readPlugin(t *Plugin) {
	slices.SortStableFunc(t.Probes, func(a, b Probe) int { return a.Began.Compare(b.Began) })
	var last time.Time
	for _, p := range t.Probes {
		last = span.Latest(last, p.Ended)
		t.ended = append(t.ended, last)
	}
	proc := pluginProcess(t.PluginID)
	t.Down = r.processes.While(proc, Down, Paused)
	t.Idle = r.processes.While(proc, Down, Paused, Starting)
	if len(r.processes.States[proc]) == 0 && len(t.Probes) == 0 { // never there
		t.Down = r.reporters.Able(t.Node).Intersect(r.expectations.Plugin(t.PluginID))
		t.Idle = t.Down
	}
	t.Opaque = r.opaqueFaults(t).Union(r.leftOpen(t))
	r.assess(t, r.evidenceOf(t))
}

// leftOpen is when the sources leave open how the plugin was: from an answer that only a house rule judges until the next one that tells.
func (r pluginReader) leftOpen(t *Plugin) span.Set {
	var out []span.Span
	for i, p := range t.Probes {
		if p.BySource == 0 || p.surely {
			continue
		}
		until := r.log.Period.To
		if next := slices.IndexFunc(t.Probes[i+1:], Probe.tells); next >= 0 {
			until = t.Probes[i+1+next].Began
		}
		out = append(out, span.New(p.Began, until))
	}
	return span.Merge(out)
}

// fault is a fault in force on one plugin, as far as the engine's actions tell.
type fault struct {
	span.Span
	name string
}

// opaqueFaults is when faults were in force of which no journalled call tells.
func (r pluginReader) opaqueFaults(t *Plugin) span.Set {
	return span.Where(r.faultsOn(t.PluginID), func(f fault) bool {
		return !slices.ContainsFunc(t.Probes, func(p Probe) bool { return slices.Contains(p.Faults, f.name) })
	})
}

// faultsOn is when faults that strike Status (or might) were in force on p: from inject to release, at the latest to
// the phase in which faults are gone.
func (r pluginReader) faultsOn(p PluginID) []fault {
	var out []fault
	open := map[string]time.Time{}
	closing := func(name string, at time.Time) {
		for n, from := range open {
			if name == "" || n == name {
				out = append(out, fault{span.New(from, at), n})
				delete(open, n)
			}
		}
	}
	var released time.Time
	for _, a := range r.actions.All {
		if !a.on(p) {
			continue
		}
		switch m, name := a.Param("method"), a.Param("fault"); {
		case a.Verb == "inject" && (m == "" || m == "all" || strings.Contains(m, "Status")):
			if _, already := open[name]; !already {
				open[name] = a.From
			}
		case a.Verb == "release":
			closing(name, a.To)
			released = span.Latest(released, a.To)
		}
	}
	if after, ok := r.log.Phases[history.PhaseAfter]; ok {
		closing("", span.Latest(after, released))
	}
	closing("", r.log.Period.To)
	return out
}

func (r pluginReader) evidenceOf(t *Plugin) []evidence {
	var out []evidence
	for _, p := range t.Probes {
		if p.tells() {
			out = append(out, evidence{span.New(p.Began, p.Ended), p.Seq, p.good(), true})
		}
	}
	for _, d := range t.Down {
		seq := int64(0)
		for _, s := range r.processes.States[pluginProcess(t.PluginID)] {
			if s.From.Equal(d.From) {
				seq = cmp.Or(seq, s.Seq)
			}
		}
		if d.To.Before(r.log.Period.To) { // the process may have answered a little before that was recorded
			d.To = span.Latest(d.From, d.To.Add(-r.bounds.Tolerance))
		}
		out = append(out, evidence{Span: d, seq: seq})
	}
	for _, s := range r.unreached(t) {
		out = append(out, evidence{Span: s})
	}
	slices.SortStableFunc(out, func(a, b evidence) int { return a.From.Compare(b.From) })
	return out
}

// unreached is when an opaque fault was in force, the reporter could probe, and yet no call arrived for longer than
// it may wait between two.
func (r pluginReader) unreached(t *Plugin) span.Set {
	patience := r.bounds.CadenceMax() + r.bounds.Tolerance
	var calls []span.Span
	for _, p := range t.Probes {
		calls = append(calls, span.New(p.Began, p.Ended.Add(patience)))
	}
	return t.Opaque.Intersect(r.reporters.Able(t.Node)).Settled(patience).Intersect(span.Merge(calls).Complement(r.log.Period))
}

// repairs are the instants at which something was done that may have mended p, in order.
func (r pluginReader) repairs(p PluginID) []time.Time {
	var out []time.Time
	for _, a := range r.actions.on(p, "release") {
		out = append(out, a.To)
	}
	for _, s := range r.processes.States[pluginProcess(p)] {
		if s.Activity == Up {
			out = append(out, s.From)
		}
	}
	slices.SortFunc(out, time.Time.Compare)
	return out
}

// injections are the instants at which a fault had been injected, in order.
func (r pluginReader) injections(p PluginID) []time.Time {
	var out []time.Time
	for _, a := range r.actions.on(p, "inject") {
		if a.Done {
			out = append(out, a.To)
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
func (r pluginReader) assess(t *Plugin, all []evidence) {
	repairs, injections := r.repairs(t.PluginID), r.injections(t.PluginID)
	var good []span.Span
	var bad *BadRun
	var run span.Span // the good run so far; zero when there is none
	for _, e := range all {
		if !e.good {
			if !run.From.IsZero() {
				good, run = append(good, run), span.New(run.To, run.To)
			}
			if bad == nil {
				from := e.From
				if e.call {
					from = lastIn(injections, run.To, e.From, e.From)
				}
				t.Bad = append(t.Bad, BadRun{Span: span.New(from, e.From), Seq: e.seq})
				bad = &t.Bad[len(t.Bad)-1]
			}
			until := e.From
			if !e.call {
				until = e.To
			}
			bad.To, run = span.Latest(bad.To, until), span.Span{}
			continue
		}
		switch {
		case bad != nil:
			bad.Recovered = lastIn(repairs, bad.To, e.From, e.From)
			run = span.New(bad.Recovered, e.To)
			bad = nil
		case run.From.IsZero():
			run = e.Span
		case r.lost(t, span.New(run.To, e.From)):
			good, run = append(good, run), e.Span
		default:
			run.To = span.Latest(run.To, e.To)
		}
	}
	if !run.From.IsZero() {
		good = append(good, run)
	}
	t.Good = span.Merge(good).Intersect(t.Opaque.Union(t.Idle).Complement(r.log.Period))
}

// lost reports whether a gap between two good calls is too long to know what was in it.
func (r pluginReader) lost(t *Plugin, gap span.Span) bool {
	known := len(r.processes.States[pluginProcess(t.PluginID)]) > 0
	return !known && gap.Length() > r.bounds.CadenceMax()+r.bounds.Tolerance
}

// evidence of how a plugin was: at an instant (a call began) or for a time (the process was down).
type evidence struct {
	span.Span
	seq        int64
	good, call bool
}
