package check

import (
	"sort"
	"strings"
	"time"

	"github.com/kmsharness/kmsharness/contract"
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

func summarize(samples []time.Duration, bound time.Duration) Latency {
	l := Latency{Count: len(samples), Bound: bound, Samples: samples[:min(len(samples), MaxSamples)]}
	if l.Count == 0 {
		return l
	}
	sorted := append([]time.Duration(nil), samples...)
	sort.Slice(sorted, func(i, j int) bool { return sorted[i] < sorted[j] })
	l.Min, l.Median, l.Max = sorted[0], sorted[(l.Count-1)/2], sorted[l.Count-1]
	return l
}

func (l Latency) String() string {
	if l.Count == 0 {
		return "not measured"
	}
	return strings.Join([]string{"min " + short(l.Min), "median " + short(l.Median), "max " + short(l.Max),
		"bound " + short(l.Bound), number(int64(l.Count)) + " measured"}, ", ")
}

// accused is when KMSPluginsDegraded was True and named the plugin.
func (pl *pluginFacts) accused(p plugin) spans {
	var out []span
	for _, s := range pl.facts.objects.degraded("True") {
		if names(s.cond.Message, p.String()) {
			out = append(out, s.span)
		}
	}
	return merged(out)
}

// detections measures, for every bad run, how long the rollup took to name the plugin.
func detections(v *Facts) (f Finding, samples []time.Duration) {
	bound := v.run.Timing.DetectionBound() + v.tolerance()
	for _, t := range v.plugins.sorted() {
		if len(t.bad) == 0 {
			continue
		}
		able := v.able.reporter(t.node).and(v.able.inCharge).and(v.expectations.ofPlugin(t.plugin)).and(v.objects.watched())
		accused := v.plugins.accused(t.plugin)
		for _, bad := range t.bad {
			due := span{bad.from, bad.from.Add(bound)}
			seen := accused.clip(span{bad.from, latest(bad.to, due.to).Add(bound)})
			switch {
			case accused.has(bad.from):
			case len(seen) > 0 && !firstOf(seen).After(due.to) && able.covers(span{bad.from, firstOf(seen)}):
				samples = append(samples, firstOf(seen).Sub(bad.from))
				f.JudgedAt(bad.from, firstOf(seen))
			default:
				complete, undisturbed := firstFor(able.clip(bad.span), bound)
				if !undisturbed {
					continue
				}
				f.JudgedAt(complete.from, complete.to)
				if len(accused.clip(span{bad.from, complete.to})) > 0 {
					continue
				}
				f.Violate(Violation{At: complete.to, From: complete.from, To: complete.to, Seq: bad.seq, Node: t.node, KeyID: t.keyID, Seen: late(seen, bad.from, "named in KMSPluginsDegraded"),
					Allowed: contract.ConditionDegraded + " True, naming " + t.String() + ", within " + short(bound) + " of its failure"})
			}
		}
	}
	return f, samples
}

// recoveries measures, for every bad run that ended, how long the rollup went on naming the plugin.
func recoveries(v *Facts) (f Finding, samples []time.Duration) {
	bound := v.run.Timing.RecoveryBound() + v.tolerance()
	for _, t := range v.plugins.sorted() {
		if len(t.bad) == 0 {
			continue
		}
		able := v.able.reporter(t.node).and(v.able.inCharge).and(v.expectations.ofPlugin(t.plugin)).and(v.objects.watched())
		accused := v.plugins.accused(t.plugin)
		for _, bad := range t.bad {
			due := span{bad.recovered, bad.recovered.Add(bound)}
			if bad.recovered.IsZero() || !accused.has(bad.recovered) {
				continue
			}
			still := accused.clip(span{bad.recovered, v.complete.to})[0]
			switch {
			case !still.to.After(due.to) && still.to.Before(v.complete.to) && able.covers(still):
				samples = append(samples, still.length())
				f.JudgedAt(bad.recovered, still.to)
			default:
				complete, undisturbed := firstFor(able.and(t.good).clip(span{bad.recovered, v.complete.to}), bound)
				if !undisturbed {
					continue
				}
				f.JudgedAt(complete.from, complete.to)
				if !still.has(complete.to) {
					continue
				}
				f.Violate(Violation{At: complete.to, From: complete.from, To: complete.to, Seq: bad.seq, Node: t.node, KeyID: t.keyID, Seen: "still named in KMSPluginsDegraded " + short(still.length()) + " after it recovered",
					Allowed: "no longer named within " + short(bound) + " of its recovery"})
			}
		}
	}
	v.plugins.unprobed(&f, bound)
	return f, samples
}

// unprobed: a plugin whose process became ready, with no fault that could keep a probe away, is probed again.
func (pl *pluginFacts) unprobed(f *Finding, bound time.Duration) {
	for _, t := range pl.sorted() {
		able := pl.facts.able.reporter(t.node).and(pl.facts.expectations.ofPlugin(t.plugin)).and(t.opaque.not(pl.facts.complete))
		for i, down := range t.idle {
			end := pl.facts.complete.to
			if i+1 < len(t.idle) {
				end = t.idle[i+1].from
			}
			due, undisturbed := firstFor(able.clip(span{down.to, end}), bound)
			if !undisturbed {
				continue
			}
			n := sort.Search(len(t.probes), func(i int) bool { return !t.probes[i].Ended.Before(due.from) })
			f.JudgedAt(due.from, due.to)
			if n == len(t.probes) || t.probes[n].Began.After(due.to) {
				f.Violate(Violation{At: due.to, From: due.from, To: due.to, Node: t.node, KeyID: t.keyID, Seen: "no probe reached the plugin since it was ready again",
					Allowed: "a Status call within " + short(bound)})
			}
		}
	}
}

// firstFor is the first time of a length that lies within one span of s: what was disturbed begins anew.
func firstFor(s spans, length time.Duration) (span, bool) {
	for _, x := range s {
		if x.length() >= length {
			return span{x.from, x.from.Add(length)}, true
		}
	}
	return span{}, false
}

func late(seen spans, since time.Time, what string) string {
	if len(seen) == 0 {
		return "never " + what
	}
	return what + " after " + short(firstOf(seen).Sub(since))
}

func detection() Invariant {
	return Invariant{
		ID:        "DETECTION",
		Statement: "a plugin that starts to fail is visible in the rollup within I + J + R + W + A",
		Source:    "Timing that a user may rely on",
		Timed:     AllTimed,
		Judge: func(v *Facts) Finding {
			f, samples := detections(v)
			f.measure("latency", summarize(samples, v.run.Timing.DetectionBound()+v.tolerance()))
			return f
		},
	}
}

func recovery() Invariant {
	return Invariant{
		ID:        "RECOVERY",
		Statement: "a plugin that recovers is visible in the rollup within I + J + R + W + A",
		Source:    "Timing that a user may rely on",
		Timed:     AllTimed,
		Judge: func(v *Facts) Finding {
			f, samples := recoveries(v)
			f.measure("latency", summarize(samples, v.run.Timing.RecoveryBound()+v.tolerance()))
			return f
		},
	}
}
