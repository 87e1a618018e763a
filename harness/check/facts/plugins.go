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

// PluginID names a plugin by its node and by the keyID under which it is reported.
type PluginID struct{ Node, KeyID string }

func (p PluginID) String() string { return p.Node + "/" + p.KeyID }

// Plugin is how a plugin was, as far as its journal, its process and the engine's actions tell. What is in neither Bad nor Good is unknown.
type Plugin struct {
	PluginID
	Probes []Probe // Status calls by their beginning
	Bad    []BadRun
	Good   span.Set
	// Opaque is when faults were in force that the journal cannot show: a call that never arrives is not in it.
	Opaque span.Set
	Down   span.Set // the process did not run
	Idle   span.Set // it did not run, or was not ready yet

	ended []time.Time // for each probe, when it and all before it had ended
}

// BadRun is a time in which every probe that was or could be made failed.
type BadRun struct {
	span.Span           // from the first failure (or what caused it) to the last evidence of it
	Seq       int64     // the event that began it
	Recovered time.Time // when it was surely well again; zero if that was not seen
}

// evidence of how a plugin was: at an instant (a call began) or for a time (the process was down).
type evidence struct {
	span.Span
	seq        int64
	good, call bool
}

// Plugin is nil where no plugin of that name was ever expected, run or called.
func (v *Facts) Plugin(id PluginID) *Plugin { return v.plugins[id] }

func (v *Facts) readPlugins() {
	v.plugins = map[PluginID]*Plugin{}
	get := func(id PluginID) *Plugin {
		if v.plugins[id] == nil {
			v.plugins[id] = &Plugin{PluginID: id}
			v.Plugins = append(v.Plugins, v.plugins[id])
		}
		return v.plugins[id]
	}
	for _, x := range v.Expectations {
		for _, n := range x.Nodes {
			for _, k := range n.KeyIDs {
				get(PluginID{n.Name, k})
			}
		}
	}
	for _, k := range v.OfRole(history.RolePlugin) {
		get(PluginID{k.Node, k.KeyID})
	}
	for e := range v.Each(history.KindCall) {
		if e.Call.Method == "Status" {
			t := get(PluginID{e.Call.Node, e.Call.KeyID})
			p := readProbe(e.Call, e.Seq, v.Run.Timing.ProbeTimeout, v.Tolerance())
			p.surely = p.surely && (p.BySource == 0 || !v.Run.SourceOnly)
			t.Probes = append(t.Probes, p)
		}
	}
	slices.SortFunc(v.Plugins, func(a, b *Plugin) int { return cmp.Compare(a.String(), b.String()) })
	for _, t := range v.Plugins {
		v.readPlugin(t)
	}
}

func (v *Facts) readPlugin(t *Plugin) {
	slices.SortStableFunc(t.Probes, func(a, b Probe) int { return a.Began.Compare(b.Began) })
	var last time.Time
	for _, p := range t.Probes {
		last = span.Latest(last, p.Ended)
		t.ended = append(t.ended, last)
	}
	proc := pluginProcess(t.PluginID)
	t.Down = v.While(proc, Down, Paused)
	t.Idle = v.While(proc, Down, Paused, Starting)
	if len(v.Processes[proc]) == 0 && len(t.Probes) == 0 { // never there
		t.Down = v.ReporterAble(t.Node).Intersect(v.PluginExpected(t.PluginID))
		t.Idle = t.Down
	}
	t.Opaque = v.opaqueFaults(t).Union(v.leftOpen(t))
	v.assess(t, v.evidenceOf(t))
}

// leftOpen is when the sources leave open how the plugin was: from an answer that only a house rule judges until the next one that tells.
func (v *Facts) leftOpen(t *Plugin) span.Set {
	var out []span.Span
	for i, p := range t.Probes {
		if p.BySource == 0 || p.surely {
			continue
		}
		until := v.Period.To
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
func (v *Facts) opaqueFaults(t *Plugin) span.Set {
	return span.Where(v.faultsOn(t.PluginID), func(f fault) bool {
		return !slices.ContainsFunc(t.Probes, func(p Probe) bool { return slices.Contains(p.Faults, f.name) })
	})
}

// faultsOn is when faults that strike Status (or might) were in force on p: from inject to release, at the latest to
// the phase in which faults are gone.
func (v *Facts) faultsOn(p PluginID) []fault {
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
	for _, a := range v.Actions {
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
	if after, ok := v.Phases[history.PhaseAfter]; ok {
		closing("", span.Latest(after, released))
	}
	closing("", v.Period.To)
	return out
}

func (v *Facts) evidenceOf(t *Plugin) []evidence {
	var out []evidence
	for _, p := range t.Probes {
		if p.tells() {
			out = append(out, evidence{span.New(p.Began, p.Ended), p.Seq, p.good(), true})
		}
	}
	for _, d := range t.Down {
		seq := int64(0)
		for _, s := range v.Processes[pluginProcess(t.PluginID)] {
			if s.From.Equal(d.From) {
				seq = cmp.Or(seq, s.Seq)
			}
		}
		if d.To.Before(v.Period.To) { // the process may have answered a little before that was recorded
			d.To = span.Latest(d.From, d.To.Add(-v.Tolerance()))
		}
		out = append(out, evidence{Span: d, seq: seq})
	}
	for _, s := range v.unreached(t) {
		out = append(out, evidence{Span: s})
	}
	slices.SortStableFunc(out, func(a, b evidence) int { return a.From.Compare(b.From) })
	return out
}

// unreached is when an opaque fault was in force, the reporter could probe, and yet no call arrived for longer than
// it may wait between two.
func (v *Facts) unreached(t *Plugin) span.Set {
	patience := v.Run.Timing.CadenceMax() + v.Tolerance()
	var calls []span.Span
	for _, p := range t.Probes {
		calls = append(calls, span.New(p.Began, p.Ended.Add(patience)))
	}
	return t.Opaque.Intersect(v.ReporterAble(t.Node)).Settled(patience).Intersect(span.Merge(calls).Complement(v.Period))
}

// repairs are the instants at which something was done that may have mended p, in order.
func (v *Facts) repairs(p PluginID) []time.Time {
	var out []time.Time
	for _, a := range v.actionsOn(p, "release") {
		out = append(out, a.To)
	}
	for _, s := range v.Processes[pluginProcess(p)] {
		if s.Activity == Up {
			out = append(out, s.From)
		}
	}
	slices.SortFunc(out, time.Time.Compare)
	return out
}

// injections are the instants at which a fault had been injected, in order.
func (v *Facts) injections(p PluginID) []time.Time {
	var out []time.Time
	for _, a := range v.actionsOn(p, "inject") {
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
func (v *Facts) assess(t *Plugin, all []evidence) {
	repairs, injections := v.repairs(t.PluginID), v.injections(t.PluginID)
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
		case v.lost(t, span.New(run.To, e.From)):
			good, run = append(good, run), e.Span
		default:
			run.To = span.Latest(run.To, e.To)
		}
	}
	if !run.From.IsZero() {
		good = append(good, run)
	}
	t.Good = span.Merge(good).Intersect(t.Opaque.Union(t.Idle).Complement(v.Period))
}

// lost reports whether a gap between two good calls is too long to know what was in it.
func (v *Facts) lost(t *Plugin, gap span.Span) bool {
	known := len(v.Processes[pluginProcess(t.PluginID)]) > 0
	return !known && gap.Length() > v.Run.Timing.CadenceMax()+v.Tolerance()
}

// CallsAt are the calls that may be the probe of e, a dated entry: lastChecked lies in them, give or take transport (a call may
// reach the plugin up to one deadline after the probe began) and precision. What began after the report was there is another probe.
func (v *Facts) CallsAt(t *Plugin, e Entry, reported time.Time) (out []Probe) {
	from, to := e.Checked.Add(-v.Tolerance()), span.Earliest(reported, e.Checked.Add(e.Precision+v.Run.Timing.ProbeTimeout+v.Tolerance()))
	end := sort.Search(len(t.Probes), func(i int) bool { return t.Probes[i].Began.After(to) })
	for i := end - 1; i >= 0 && !t.ended[i].Before(from); i-- {
		if !t.Probes[i].Ended.Before(from) {
			out = append(out, t.Probes[i])
		}
	}
	return out
}

// ProbedAt is when the probes of a write had surely begun; zero if its entries do not tell. With whole seconds the plugin's journal tells more than
// lastChecked.
func (v *Facts) ProbedAt(node string, entries []Entry) (first time.Time) {
	for _, e := range entries {
		at, known := v.CheckedAt(node, e)
		if !known {
			return time.Time{}
		}
		if at = v.begunBy(PluginID{node, e.KeyID}, at, at.Add(e.Precision)); first.IsZero() || at.Before(first) {
			first = at
		}
	}
	return first
}

// begunBy is when a probe that was checked within a span had surely begun.
func (v *Facts) begunBy(p PluginID, from, to time.Time) time.Time {
	t := v.plugins[p]
	if t == nil {
		return to
	}
	last := sort.Search(len(t.Probes), func(i int) bool { return !t.Probes[i].Began.Before(to) }) - 1
	if last >= 0 && !t.Probes[last].Began.Before(from) {
		return t.Probes[last].Began
	}
	return to
}

// DeletedKEK is the last instant at which a scenario deleted a KEK: what lay under it is lost, and meant to be.
func (v *Facts) DeletedKEK() (at time.Time) {
	for _, a := range v.Actions {
		if a.Verb == "kms" && a.Param("op") == "delete" {
			at = span.Latest(at, a.To)
		}
	}
	return at
}
