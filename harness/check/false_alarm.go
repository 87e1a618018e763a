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
		House:     []string{houseReasons},
		judge:     judgeFalseAlarm,
	}
}

func judgeFalseAlarm(v *view) (f Finding) {
	settled := v.settledHealthy()
	for _, s := range settled {
		f.judgedAt(s.from, s.to)
	}
	f.measure("settled", short(settled.total()))
	for _, s := range v.rollup(contract.ConditionDegraded) {
		if s.cond != nil && s.cond.Status == "False" {
			continue
		}
		for _, wrong := range settled.clip(s.span) {
			f.violate(Violation{At: wrong.from, Seq: s.seq, Seen: shown(s.cond) + ", although every expected plugin, reporter and the aggregator had been well for longer than the bound",
				Allowed: "False from " + short(v.run.Timing.RecoveryBound()+v.tolerance()) + " after everything was well"})
		}
	}
	v.judgeReasons(&f)
	return f
}

// settledHealthy is when everything had been well for longer than the recovery bound.
func (v *view) settledHealthy() spans {
	begin := v.whole.from
	for _, name := range []history.PhaseName{history.PhaseBefore, history.PhaseSteps} {
		if at, ok := v.phases[name]; ok {
			begin = at
			break
		}
	}
	calm := v.inCharge.and(v.watched()).and(v.foreignReports().not(v.whole)).and(v.longStarvation().not(v.whole))
	var out []span
	for _, x := range v.expected {
		if !x.active || len(x.nodes) == 0 {
			continue
		}
		well := calm.clip(x.span)
		for name, n := range x.nodes {
			well = well.and(v.reporterAble(name))
			for _, k := range n.KeyIDs {
				well = well.and(v.plugins[plugin{name, k}].good)
			}
		}
		out = append(out, well.settled(v.run.Timing.RecoveryBound()+v.tolerance())...)
	}
	return merged(out).clip(span{begin, v.whole.to})
}

// foreignReports is when a report that nobody of the system under test wrote stood on the CR.
func (v *view) foreignReports() spans {
	var out []span
	for _, changes := range v.reports {
		for i, c := range changes {
			if c.rep == nil || !c.rep.foreign {
				continue
			}
			to := v.whole.to
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
func (v *view) judgeReasons(f *Finding) {
	causes := map[string]spans{
		contract.ReasonPluginUnhealthy:   v.causes(contract.StatusUnhealthy),
		contract.ReasonPluginUnreachable: v.causes(contract.StatusError),
	}
	all := causes[contract.ReasonPluginUnhealthy].or(causes[contract.ReasonPluginUnreachable])
	for _, s := range v.degraded("True") {
		judged := v.aggAble.and(v.known()).clip(s.span)
		if len(judged) == 0 {
			continue
		}
		f.judgedAt(firstOf(judged), judged[len(judged)-1].to)
		for _, wrong := range judged.and(causes[s.cond.Reason].not(s.span)) {
			house := ""
			if all.covers(wrong) { // some plugin failed, in another way than the reason says
				house = houseReasons
			}
			f.violate(Violation{House: house, At: wrong.from, Seq: s.seq, Seen: shown(s.cond) + ", but no plugin gave cause for it",
				Allowed: "True only for what some plugin answered (or did not) within the last " + short(v.believed()) + ", with its reason"})
		}
	}
}

// believed is how long after a probe a rollup may still speak of it.
func (v *view) believed() time.Duration {
	return contract.StaleAfter(v.interval()) + v.run.Timing.ProbeTimeout + v.latency()
}

// causes is when a rollup could rightly say that some plugin was unhealthy, or in error.
func (v *view) causes(status contract.Status) spans {
	var out []span
	for _, t := range v.plugins {
		var of []span
		for _, p := range t.probes {
			if p.answers.allow(status) {
				of = append(of, span{p.Began, p.Ended})
			}
		}
		of = append(of, t.opaque...)
		if status == contract.StatusError {
			of = append(append(of, t.idle...), t.ranOut...)
		}
		for _, s := range of {
			out = append(out, s.grow(0, v.aheadIn(t.node, s)))
		}
	}
	for _, changes := range v.reports {
		for _, c := range changes {
			if c.rep != nil && c.rep.foreign || c.rep != nil && c.at.Sub(v.whole.from) < v.interval() {
				out = append(out, span{c.at, c.at}) // somebody's claim, or from before the recording
			}
		}
	}
	for i := range out {
		out[i] = out[i].grow(v.run.Timing.ProbeTimeout+v.tolerance(), v.believed())
	}
	return merged(out)
}
