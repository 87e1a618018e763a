package facts

import (
	"slices"
	"sort"
	"time"

	"github.com/kmsharness/kmsharness/harness/check/span"
)

// PluginID names a plugin by its node and by the keyID under which it is reported.
type PluginID struct{ Node, KeyID string }

func (p PluginID) String() string { return p.Node + "/" + p.KeyID }

// Plugin is how a plugin was, as far as its journal, its process and the engine's actions tell. What is in neither Bad
// nor Good is unknown, and not judged: between a good call and a bad one the plugin may have failed at any time.
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

// BadRun is a time in which every probe that was or could be made failed. DETECTION measures from From, RECOVERY from
// Recovered; both are chosen in favour of the program under test where the evidence leaves a gap.
type BadRun struct {
	span.Span           // from the first failure (or what caused it) to the last evidence of it
	Seq       int64     // the event that began it
	Recovered time.Time // when it was surely well again; zero if that was not seen
}

// Plugins are sorted by name.
type Plugins struct {
	All    []*Plugin
	clocks *Clocks
}

// Of is nil where no plugin of that name was ever expected, run or called.
func (ps *Plugins) Of(id PluginID) *Plugin {
	if i := slices.IndexFunc(ps.All, func(p *Plugin) bool { return p.PluginID == id }); i >= 0 {
		return ps.All[i]
	}
	return nil
}

// ProbedAt returns when the probes of a write had surely begun; zero if its entries do not tell. In production
// lastChecked has whole seconds, and the plugin's journal, with nanoseconds, tells more.
func (ps *Plugins) ProbedAt(node string, entries []Entry) (first time.Time) {
	for _, e := range entries {
		at, known := ps.clocks.CheckedAt(node, e)
		if !known {
			return time.Time{}
		}
		if at = ps.Of(PluginID{node, e.KeyID}).begunBy(at, at.Add(e.Precision)); first.IsZero() || at.Before(first) {
			first = at
		}
	}
	return first
}

// begunBy returns when a probe that was checked in [from, to) had surely begun. Without a call in that time it is the
// latest possible instant, which makes a write look younger, never older.
func (p *Plugin) begunBy(from, to time.Time) time.Time {
	if p == nil {
		return to
	}
	if last, some := span.Last(p.Probes, to.Add(-1)); some && !last.Began.Before(from) {
		return last.Began
	}
	return to
}

// CallsAt are the calls that may be the probe of e, a dated entry: lastChecked lies in them, give or take transport (a call may
// reach the plugin up to one deadline after the probe began) and precision. What began after the report was there is another probe.
func (p *Plugin) CallsAt(e Entry, reported time.Time, bounds Bounds) (out []Probe) {
	from, to := e.Checked.Add(-bounds.Tolerance), span.Earliest(reported, e.Checked.Add(e.Precision+bounds.ProbeTimeout+bounds.Tolerance))
	end := sort.Search(len(p.Probes), func(i int) bool { return p.Probes[i].Began.After(to) })
	for i := end - 1; i >= 0 && !p.ended[i].Before(from); i-- {
		if !p.Probes[i].Ended.Before(from) {
			out = append(out, p.Probes[i])
		}
	}
	return out
}
