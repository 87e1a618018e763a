package check

import (
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/history"
)

func falseAlarm() Invariant {
	return Invariant{
		ID:        "FALSE-ALARM",
		Statement: "once everything has been healthy for longer than the recovery bound, KMSPluginsDegraded is False; it is never True for a reason that did not happen",
		Source:    "Timing that a user may rely on",
		Rules:     []Rule{{Code: ruleReasons, Statement: houseReasons, House: true}},
		Timed:     AllTimed,
		Judge:     judgeFalseAlarm,
	}
}

func judgeFalseAlarm(v *Facts) (f Finding) {
	settled := settledHealthy(v)
	for _, s := range settled {
		f.JudgedAt(s.from, s.to)
	}
	f.measure("settled", short(settled.total()))
	for _, s := range v.objects.rollup(contract.ConditionDegraded) {
		if s.cond != nil && s.cond.Status == "False" {
			continue
		}
		for _, wrong := range settled.clip(s.span) {
			f.Violate(Violation{At: wrong.from, Seq: s.seq, Seen: shown(s.cond) + ", although every expected plugin, reporter and the aggregator had been well for longer than the bound",
				Allowed: "False from " + short(v.run.Timing.RecoveryBound()+v.tolerance()) + " after everything was well"})
		}
	}
	judgeReasons(v, &f)
	return f
}

// settledHealthy is when everything had been well for longer than the recovery bound.
func settledHealthy(v *Facts) spans {
	begin := v.complete.from
	for _, name := range []history.PhaseName{history.PhaseBefore, history.PhaseSteps} {
		if at, ok := v.phases[name]; ok {
			begin = at
			break
		}
	}
	undisturbed := v.able.inCharge.and(v.objects.watched()).and(v.objects.foreignReports().not(v.complete))
	var out []span
	for _, x := range v.expectations.all {
		if !x.active || len(x.nodes) == 0 {
			continue
		}
		well := undisturbed.clip(x.span)
		for name, n := range x.nodes {
			well = well.and(v.able.reporter(name))
			for _, k := range n.KeyIDs {
				well = well.and(v.plugins.all[plugin{name, k}].good)
			}
		}
		out = append(out, well.settled(v.run.Timing.RecoveryBound()+v.tolerance())...)
	}
	return merged(out).clip(span{begin, v.complete.to})
}

// foreignReports is when a report that nobody of the system under test wrote stood on the CR.
func (ob *objectFacts) foreignReports() spans {
	var out []span
	for _, changes := range ob.reports {
		for i, c := range changes {
			if c.rep == nil || !c.rep.foreign {
				continue
			}
			to := ob.facts.complete.to
			if i+1 < len(changes) {
				to = changes[i+1].at
			}
			out = append(out, span{c.at, to})
		}
	}
	return merged(out)
}

// judgeReasons: a rollup that is True gives a reason; some plugin must have given cause for it within the time that
// an entry is believed.
func judgeReasons(v *Facts, f *Finding) {
	causes := map[string]spans{
		contract.ReasonPluginUnhealthy:   causes(v, contract.StatusUnhealthy),
		contract.ReasonPluginUnreachable: causes(v, contract.StatusError),
	}
	all := causes[contract.ReasonPluginUnhealthy].or(causes[contract.ReasonPluginUnreachable])
	for _, s := range v.objects.degraded("True") {
		judged := v.able.aggregator.and(v.expectations.known()).clip(s.span)
		if len(judged) == 0 {
			continue
		}
		f.JudgedAt(firstOf(judged), judged[len(judged)-1].to)
		for _, wrong := range judged.and(causes[s.cond.Reason].not(s.span)) {
			rule := ""
			if all.covers(wrong) { // some plugin failed, in another way than the reason says
				rule = ruleReasons
			}
			f.Violate(Violation{Rule: rule, At: wrong.from, Seq: s.seq, Seen: shown(s.cond) + ", but no plugin gave cause for it",
				Allowed: "True only for what some plugin answered (or did not) within the last " + short(believed(v)) + ", with its reason"})
		}
	}
}

// believed is how long after a probe a rollup may still speak of it.
func believed(v *Facts) time.Duration {
	return contract.StaleAfter(v.interval()) + v.run.Timing.ProbeTimeout + v.latency()
}

// causes is when a rollup could rightly say that some plugin was unhealthy, or in error.
func causes(v *Facts, status contract.Status) spans {
	var out []span
	for _, t := range v.plugins.all {
		var of []span
		for _, p := range t.probes {
			if p.answers.allow(status) {
				of = append(of, span{p.Began, p.Ended})
			}
		}
		of = append(of, t.opaque...)
		if status == contract.StatusError {
			of = append(of, t.idle...)
		}
		for _, s := range of {
			out = append(out, s.grow(0, v.clocks.aheadIn(t.node, s)))
		}
	}
	for _, changes := range v.objects.reports {
		for _, c := range changes {
			if c.rep != nil && c.rep.foreign || c.rep != nil && c.at.Sub(v.complete.from) < v.interval() {
				out = append(out, span{c.at, c.at}) // somebody's claim, or from before the recording
			}
		}
	}
	for i := range out {
		out[i] = out[i].grow(v.run.Timing.ProbeTimeout+v.tolerance(), believed(v))
	}
	return merged(out)
}
