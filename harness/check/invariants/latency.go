package invariants

import (
	"fmt"
	"slices"
	"sort"
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/check/facts"
	"github.com/kmsharness/kmsharness/harness/check/span"
	"github.com/kmsharness/kmsharness/harness/check/text"
	"github.com/kmsharness/kmsharness/harness/history"
)

func judgeDetection(v *facts.Facts) (f Finding) {
	bound := v.DetectionBound() + v.Tolerance
	for _, a := range accusations(v) {
		a.judgeDetection(v, &f, bound)
	}
	f.measure("latency", Summarize(f.Latencies, bound))
	return f
}

func judgeRecovery(v *facts.Facts) (f Finding) {
	bound := v.RecoveryBound() + v.Tolerance
	for _, a := range accusations(v) {
		a.judgeRecovery(v, &f, bound)
	}
	judgeUnprobed(v, &f, bound)
	f.measure("latency", Summarize(f.Latencies, bound))
	return f
}

// Invariants whose findings have Latencies.
const (
	DetectionID = "DETECTION"
	RecoveryID  = "RECOVERY"
)

// Latency sums up how fast changes became visible.
type Latency struct {
	Count  int           `json:"count"`
	Min    time.Duration `json:"min"`
	Median time.Duration `json:"median"`
	Max    time.Duration `json:"max"`
	Bound  time.Duration `json:"bound"` // tolerance included
	// Samples are the first MaxSamples, in the order of plugins and time.
	Samples []time.Duration `json:"samples,omitempty"`
}

// MaxSamples bounds how many latencies a verdict keeps; all are counted.
const MaxSamples = 1000

// Summarize sums up latencies; the tolerance is a part of their bound.
func Summarize(samples []time.Duration, bound time.Duration) Latency {
	l := Latency{Count: len(samples), Bound: bound, Samples: samples[:min(len(samples), MaxSamples)]}
	if l.Count > 0 {
		sorted := slices.Sorted(slices.Values(samples))
		l.Min, l.Median, l.Max = sorted[0], sorted[(l.Count-1)/2], sorted[l.Count-1]
	}
	return l
}

func (l Latency) String() string {
	if l.Count == 0 {
		return "not measured"
	}
	return fmt.Sprintf("min %s, median %s, max %s, bound %s, %d measured", text.Short(l.Min), text.Short(l.Median), text.Short(l.Max), text.Short(l.Bound), l.Count)
}

// accusation is a bad run of a plugin, and how the rollup followed it.
type accusation struct {
	*facts.Plugin
	bad     facts.BadRun
	able    span.Set // reporter and aggregator could report the plugin
	accused span.Set // KMSPluginsDegraded was True and named the plugin
}

// accusations pairs each bad run of a plugin with the spans in which the rollup named it. DETECTION judges the beginning
// of a run, RECOVERY its end.
func accusations(v *facts.Facts) (all []accusation) {
	failing := v.CR.Degraded("True")
	for _, t := range v.Plugins.All {
		if len(t.Bad) == 0 {
			continue
		}
		able := v.Reporters.Able(t.Node).Intersect(v.Aggregator.InCharge).Intersect(v.Expectations.Plugin(t.PluginID)).Intersect(v.CR.Seen())
		accused := span.Where(failing, func(s facts.State[history.Condition]) bool { return names(s.Value.Message, t.String()) })
		for _, bad := range t.Bad {
			all = append(all, accusation{t, bad, able, accused})
		}
	}
	return all
}

// judgeDetection measures how long the rollup took to name the plugin. It judges only bad runs that lasted for the bound
// while reporter and aggregator could work: a shorter failure may be over before the next probe.
func (a accusation) judgeDetection(v *facts.Facts, f *Finding, bound time.Duration) {
	due := a.bad.From.Add(bound)
	seen := a.accused.Clip(span.New(a.bad.From, span.Latest(a.bad.To, due).Add(bound)))
	switch {
	case a.accused.Contains(a.bad.From):
		return
	case len(seen) > 0 && !seen.Begin().After(due) && a.able.Covers(span.New(a.bad.From, seen.Begin())):
		f.Latencies = append(f.Latencies, seen.Begin().Sub(a.bad.From))
		f.JudgedAt(a.bad.From, seen.Begin())
		return
	}
	window, undisturbed := firstFor(a.able.Clip(a.bad.Span), bound)
	if !undisturbed {
		return
	}
	f.judgedIn(window)
	if a.accused.Overlaps(span.New(a.bad.From, window.To)) {
		return
	}
	late := "never named in KMSPluginsDegraded"
	if len(seen) > 0 {
		late = "named in KMSPluginsDegraded after " + text.Short(seen.Begin().Sub(a.bad.From))
	}
	f.Violate(a.violation(window, late, contract.ConditionDegraded+" True, naming "+a.String()+", within "+text.Short(bound)+" of its failure"))
}

// judgeRecovery measures how long the rollup went on naming the plugin after a bad run that ended. Only a plugin that
// was named can recover visibly.
func (a accusation) judgeRecovery(v *facts.Facts, f *Finding, bound time.Duration) {
	if a.bad.Recovered.IsZero() || !a.accused.Contains(a.bad.Recovered) {
		return
	}
	rest := span.New(a.bad.Recovered, v.Period.To)
	still := a.accused.Clip(rest)[0]
	if !still.To.After(a.bad.Recovered.Add(bound)) && still.To.Before(v.Period.To) && a.able.Covers(still) {
		f.Latencies = append(f.Latencies, still.Length())
		f.JudgedAt(a.bad.Recovered, still.To)
		return
	}
	window, undisturbed := firstFor(a.able.Intersect(a.Good).Clip(rest), bound)
	if !undisturbed {
		return
	}
	f.judgedIn(window)
	if still.Contains(window.To) {
		f.Violate(a.violation(window, "still named in KMSPluginsDegraded "+text.Short(still.Length())+" after it recovered", "no longer named within "+text.Short(bound)+" of its recovery"))
	}
}

func (a accusation) violation(window span.Span, seen, allowed string) Violation {
	return Violation{At: window.To, From: window.From, To: window.To, Seq: a.bad.Seq, Node: a.Node, KeyID: a.KeyID, Seen: seen, Allowed: allowed}
}

// judgeUnprobed: a plugin whose process became ready, with no fault that could keep a probe away, is probed again.
func judgeUnprobed(v *facts.Facts, f *Finding, bound time.Duration) {
	for _, t := range v.Plugins.All {
		able := v.Reporters.Able(t.Node).Intersect(v.Expectations.Plugin(t.PluginID)).Intersect(t.Opaque.Complement(v.Period))
		for i, down := range t.Idle {
			end := v.Period.To
			if i+1 < len(t.Idle) {
				end = t.Idle[i+1].From
			}
			due, undisturbed := firstFor(able.Clip(span.New(down.To, end)), bound)
			if !undisturbed {
				continue
			}
			n := sort.Search(len(t.Probes), func(i int) bool { return !t.Probes[i].Ended.Before(due.From) })
			f.judgedIn(due)
			if n == len(t.Probes) || t.Probes[n].Began.After(due.To) {
				f.Violate(Violation{At: due.To, From: due.From, To: due.To, Node: t.Node, KeyID: t.KeyID, Seen: "no probe has reached the plugin since it became ready",
					Allowed: "a Status call within " + text.Short(bound)})
			}
		}
	}
}

// firstFor returns the first span of a length that lies within one span of s. After a disturbance the bound counts from
// its end: a reporter that could not write for a moment has a full interval again.
func firstFor(s span.Set, length time.Duration) (span.Span, bool) {
	i := slices.IndexFunc(s, func(x span.Span) bool { return x.Length() >= length })
	if i < 0 {
		return span.Span{}, false
	}
	return span.New(s[i].From, s[i].From.Add(length)), true
}
