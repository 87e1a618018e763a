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

// pluginReader finds when each plugin was surely good or bad, from what its journal, its process and the actions tell.
type pluginReader struct {
	log          *Log
	bounds       Bounds
	sourceOnly   bool // the run is judged by the sources alone
	actions      *Actions
	expectations Expectations
	processes    *Processes
	reporters    *Reporters
}

// evidence of how a plugin was: at an instant (a call began) or for a time (the process was down). A bad
// call is evidence for the instant of its beginning only: while it lasted its outcome was not known.
type evidence struct {
	span.Span
	seq        int64
	good, call bool
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

// leftOpen is when the sources leave open how the plugin was: from an answer that only a house rule judges until the next one that tells, and from a
// successor's start at its path until a call after the older one's end: until then the path may lead to either, or nowhere.
func (r pluginReader) leftOpen(t *Plugin) span.Set {
	var out []span.Span
	for i, p := range t.Probes {
		if p.BySource == 0 || p.surely {
			continue
		}
		out = append(out, span.New(p.Began, until(t.Probes[i+1:], Probe.tells, r.log.Period.To)))
	}
	for _, both := range r.processes.Successions[pluginProcess(t.PluginID)] {
		after := func(p Probe) bool { return p.Began.After(both.To) }
		out = append(out, span.New(both.From, until(t.Probes, after, r.log.Period.To)))
	}
	return span.Merge(out)
}

// opaqueFaults returns the spans in which faults that strike Status (or might) were in force of which no journalled call
// tells, such as a removed socket: from inject to release, at the latest to the phase in which all faults are gone. How
// the plugin was is unknown then.
func (r pluginReader) opaqueFaults(t *Plugin) span.Set {
	actions, gone := r.actions.on(t.PluginID, "inject", "release"), r.log.Period.To
	if after, ok := r.log.Phases[history.PhaseAfter]; ok {
		gone = after
		for _, a := range actions {
			if a.Verb == "release" {
				gone = span.Latest(gone, a.To)
			}
		}
	}
	var out []span.Span
	for i, a := range actions {
		method, name := a.Param("method"), a.Param("fault")
		told := func(p Probe) bool { return slices.Contains(p.Faults, name) }
		if a.Verb != "inject" || method != "" && method != "all" && !strings.Contains(method, "Status") || slices.ContainsFunc(t.Probes, told) {
			continue
		}
		until := gone
		releases := func(x Action) bool {
			return x.Verb == "release" && (x.Param("fault") == "" || x.Param("fault") == name)
		}
		if n := slices.IndexFunc(actions[i:], releases); n >= 0 {
			until = actions[i+n].To
		}
		out = append(out, span.New(a.From, until))
	}
	return span.Merge(out)
}

func (r pluginReader) evidenceOf(t *Plugin) []evidence {
	var out []evidence
	for _, p := range t.Probes {
		switch {
		case p.good():
			out = append(out, evidence{p.Span, p.Seq, true, true})
		case p.bad(): // while it lasted nobody knew
			out = append(out, evidence{span.New(p.Began, p.Began), p.Seq, false, true})
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

// unreached returns the spans in which an opaque fault was in force, the reporter could probe, and yet no call arrived
// for longer than it may wait between two (CadenceMax plus tolerance). That is evidence that the fault kept its probes
// away: the plugin was bad.
func (r pluginReader) unreached(t *Plugin) span.Set {
	patience := r.bounds.CadenceMax() + r.bounds.Tolerance
	calls := span.Map(t.Probes, func(p Probe) span.Span { return span.New(p.Began, p.Ended.Add(patience)) })
	return t.Opaque.Intersect(r.reporters.Able(t.Node)).Settled(patience).Intersect(calls.Complement(r.log.Period))
}

// mends returns the instants at which something was done that may have mended a plugin (a release, a start), and breaks
// those at which a fault had been injected, both in order. assess dates the turn of a plugin to them, since a call shows
// it only later.
func (r pluginReader) mends(p PluginID) (mends, breaks []time.Time) {
	for _, a := range r.actions.on(p, "inject", "release") {
		switch {
		case a.Verb == "release":
			mends = append(mends, a.To)
		case a.Done:
			breaks = append(breaks, a.To)
		}
	}
	for _, s := range r.processes.States[pluginProcess(p)] {
		if s.Activity == Up {
			mends = append(mends, s.From)
		}
	}
	slices.SortFunc(mends, time.Time.Compare)
	return mends, breaks
}

// lastIn is the last of times in (after, until], else until.
func lastIn(times []time.Time, after, until time.Time) time.Time {
	i := sort.Search(len(times), func(i int) bool { return times[i].After(until) }) - 1
	if i >= 0 && times[i].After(after) {
		return times[i]
	}
	return until
}

// assess turns evidence into times in which the plugin was surely bad or surely good.
func (r pluginReader) assess(t *Plugin, all []evidence) {
	mends, breaks := r.mends(t.PluginID)
	patience := r.bounds.CadenceMax() + r.bounds.Tolerance // for a gap between two good calls, where nothing else tells what was in it
	followed := len(r.processes.States[pluginProcess(t.PluginID)]) > 0
	var good []span.Span
	var bad *BadRun
	var run span.Span // the good run so far; zero when there is none
	for _, e := range all {
		switch {
		case !e.good && bad == nil:
			from := e.From
			if e.call {
				from = lastIn(breaks, run.To, e.From)
			}
			t.Bad = append(t.Bad, BadRun{Span: span.New(from, e.To), Seq: e.seq})
			bad = &t.Bad[len(t.Bad)-1]
			good, run = append(good, run), span.Span{}
		case !e.good:
			bad.To = span.Latest(bad.To, e.To)
		case bad != nil:
			bad.Recovered = lastIn(mends, bad.To, e.From)
			run, bad = span.New(bad.Recovered, e.To), nil
		case run.From.IsZero() || !followed && e.From.Sub(run.To) > patience:
			good, run = append(good, run), e.Span
		default:
			run.To = span.Latest(run.To, e.To)
		}
	}
	t.Good = span.Merge(append(good, run)).Intersect(t.Opaque.Union(t.Idle).Complement(r.log.Period))
}
