package invariants

import (
	"cmp"
	"slices"
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/check/facts"
	"github.com/kmsharness/kmsharness/harness/check/span"
	"github.com/kmsharness/kmsharness/harness/check/text"
	"github.com/kmsharness/kmsharness/harness/history"
)

// It judges in two ways. Where everything was well for the recovery bound, only False is right. Anywhere else True needs
// a cause that some plugin gave: judgeReasons.
func judgeFalseAlarm(v *facts.Facts) (f Finding) {
	settled := settledHealthy(v)
	for _, s := range settled {
		f.judgedIn(s)
	}
	f.measure("settled", text.Short(settled.Total()))
	for s, wrong := range span.Within(v.CR.Of(contract.ConditionDegraded), settled) {
		if s.Value == nil || s.Value.Status != "False" {
			f.Violate(Violation{At: wrong.From, Seq: s.Seq, Seen: text.Condition(s.Value) + ", although every expected plugin, reporter and the aggregator had been well for longer than the bound",
				Allowed: "False from " + text.Short(v.RecoveryBound()+v.Tolerance) + " after everything was well"})
		}
	}
	judgeReasons(v, &f)
	return f
}

// settledHealthy returns the spans in which everything had been well for longer than the recovery bound: every expected
// plugin good by its journal, every reporter able to write, an aggregator in charge, and no foreign report on the CR.
// Before the phase "before" the control plane is still coming up.
func settledHealthy(v *facts.Facts) span.Set {
	begin := cmp.Or(v.Phases[history.PhaseBefore], v.Phases[history.PhaseSteps], v.Period.From)
	undisturbed := v.Aggregator.InCharge.Intersect(v.CR.Seen()).Intersect(foreignReports(v).Complement(v.Period))
	var out []span.Span
	for _, x := range v.Expectations {
		if !x.Active || len(x.Nodes) == 0 {
			continue
		}
		well := undisturbed.Clip(x.Span)
		for name, n := range x.Nodes {
			well = well.Intersect(v.Reporters.Able(name))
			for _, k := range n.KeyIDs {
				well = well.Intersect(v.Plugins.Of(facts.PluginID{Node: name, KeyID: k}).Good)
			}
		}
		out = append(out, well.Settled(v.RecoveryBound()+v.Tolerance)...)
	}
	return span.Merge(out).Clip(span.New(begin, v.Period.To))
}

// claimed reports whether a part of a report is not what a reporter of the system under test wrote last.
func claimed(r *facts.Report) bool { return r.Foreign || len(r.Left) > 0 }

// foreignReports is when a report, or an entry, that no reporter wrote stood on the CR.
func foreignReports(v *facts.Facts) (out span.Set) {
	for _, states := range v.Reports {
		out = out.Union(span.Where(states, func(s facts.State[facts.Report]) bool { return s.Value != nil && claimed(s.Value) }))
	}
	return out
}

// judgeReasons: a rollup that is True gives a reason; some plugin must have given cause for it within the time that
// an entry is believed.
func judgeReasons(v *facts.Facts, f *Finding) {
	causes := map[string]span.Set{
		contract.ReasonPluginUnhealthy:   causes(v, contract.StatusUnhealthy),
		contract.ReasonPluginUnreachable: causes(v, contract.StatusError),
	}
	all := causes[contract.ReasonPluginUnhealthy].Union(causes[contract.ReasonPluginUnreachable])
	known := v.Aggregator.Able.Intersect(v.Expectations.Known())
	for _, s := range v.CR.Degraded("True") {
		judged := known.Clip(s.Span)
		if len(judged) == 0 {
			continue
		}
		f.judgedThrough(judged)
		for _, wrong := range judged.Intersect(causes[s.Value.Reason].Complement(s.Span)) {
			rule := ""
			if all.Covers(wrong) { // some plugin failed, in another way than the reason says
				rule = "reasons"
			}
			f.Violate(Violation{Rule: rule, At: wrong.From, Seq: s.Seq, Seen: text.Condition(s.Value) + ", but no plugin gave cause for it",
				Allowed: "True only for what some plugin answered (or did not) within the last " + text.Short(believed(v)) + ", with its reason"})
		}
	}
}

// believed is how long after a probe a rollup may still speak of it: the report is fresh for 4 I after lastChecked,
// which is up to R later than the beginning of the call, and the rollup follows within A plus tolerance.
func believed(v *facts.Facts) time.Duration {
	return contract.StaleAfter(v.Interval) + v.ProbeTimeout + v.Latency()
}

// causes returns the spans in which a rollup could rightly say that some plugin was unhealthy, or in error. A reporter
// whose clock is ahead dates its entries into the future, and they are believed for as much longer.
func causes(v *facts.Facts, status contract.Status) span.Set {
	var out []span.Span
	for _, t := range v.Plugins.All {
		all := slices.Clone(t.Opaque)
		if status == contract.StatusError {
			all = append(all, t.Idle...)
		}
		for _, p := range t.Probes {
			if p.Answers.Allow(status) {
				all = append(all, p.Span)
			}
		}
		for _, s := range all {
			out = append(out, s.Grow(0, v.Clocks.Ahead(t.Node, s)))
		}
	}
	for _, states := range v.Reports {
		for _, s := range states {
			if s.Value != nil && (claimed(s.Value) || s.From.Sub(v.Period.From) < v.Interval) {
				out = append(out, span.New(s.From, s.From)) // somebody's claim, or from before the recording
			}
		}
	}
	return span.Grown(out, v.ProbeTimeout+v.Tolerance, believed(v))
}
