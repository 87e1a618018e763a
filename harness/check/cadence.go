package check

import (
	"slices"
	"time"

	"github.com/kmsharness/kmsharness/harness/history"
)

func cadence() Invariant {
	return Invariant{
		ID:        "CADENCE",
		Statement: "while it can write, a reporter writes at least once per I + J + R + W, at most once per I − J, once for each tick, and not in lockstep with others",
		Source:    "The reporter, interval and jitter",
		Rules: []Rule{
			{Code: ruleSilent, Statement: "a reporter that can write writes at least once per I + J + R + W"},
			{Code: ruleFrequent, Statement: "a reporter writes at most once per I − J"},
			{Code: ruleLockstep, Statement: "the ticks of a reporter have jitter"},
			{Code: ruleTries, Statement: "whatever a write is refused with, the next try is that of the next interval", House: true},
		},
		Timed: AllTimed,
		Judge: judgeCadence,
	}
}

func judgeCadence(v *Facts) (f Finding) {
	nodes := map[string]bool{}
	for _, p := range v.processes.ofRole(history.RoleReporter) {
		nodes[p.node] = true
	}
	for _, node := range sortedKeys(nodes) {
		writes := v.requests.writesOf(node)
		judgeSlow(v, &f, node, writes)
		judgeOmitted(v, &f, node)
		judgeFast(v, &f, node, ticksOf(v, node, writes), "writes", ruleFrequent, v.processes.runsOf(node))
		judgeTries(v, &f, node)
		judgeLockstep(v, &f, node, writes)
	}
	return f
}

// judgeSlow: no gap between two writes, nor before the first and after the last one while the reporter could write.
func judgeSlow(v *Facts, f *Finding, node string, writes []write) {
	bound := v.run.Timing.CadenceMax() + v.tolerance()
	i := 0
	for _, able := range v.able.writing(node) {
		last := able.from
		gap := func(until time.Time) {
			f.JudgedAt(last, until)
			if until.Sub(last) > bound {
				f.Violate(Violation{Rule: ruleSilent, At: last.Add(bound), From: last, To: last.Add(bound), Node: node, Seen: "the reporter of " + node + " wrote nothing for " + short(until.Sub(last)) + " while it could write" + v.plugins.longRound(node, span{last, until}),
					Allowed: "a successful write within " + short(bound)})
			}
		}
		for ; i < len(writes) && !writes[i].to.After(able.to); i++ {
			if writes[i].to.After(able.from) {
				gap(writes[i].to)
				last = writes[i].to
			}
		}
		gap(able.to)
	}
}

// judgeOmitted: each tick brings a write, whether anything has changed or not. A tick comes after I + J at the latest, and at the latest that long after the
// write before was done. A write that failed was tried. So many writes in a row are judged: by two, one that takes a bit less than the bound of judgeSlow each
// time, and by seven or nine, one that omits every third.
func judgeOmitted(v *Facts, f *Finding, node string) {
	if v.run.Connectivity == history.ConnectStream {
		return // the aggregator writes
	}
	able, lives := v.able.writing(node), v.processes.runsOf(node)
	var tried []*request
	for _, n := range v.requests.requestsOf[node] {
		if r := &v.requests.all[n]; r.write && r.onCR {
			tried = append(tried, r)
		}
	}
	slices.SortStableFunc(tried, func(a, b *request) int { return a.received.Compare(b.received) })
	for _, sustained := range []int{2, 7, 9} {
		f.omitted(v, node, tried, sustained, able, lives)
	}
}

func (f *Finding) omitted(v *Facts, node string, tried []*request, sustained int, able, lives spans) {
	for i := 0; i+sustained < len(tried); i++ {
		first, last := tried[i], tried[i+sustained]
		during := span{first.received, last.received}
		if !able.covers(during) || !slices.ContainsFunc(lives, func(life span) bool { return spans{life}.covers(during) }) {
			continue
		}
		if slices.ContainsFunc(gaps(tried[i:i+sustained+1]), func(gap time.Duration) bool { return gap > v.run.Timing.CadenceMax()+v.tolerance() }) {
			continue // judgeSlow
		}
		most := time.Duration(sustained)*(v.run.Timing.Interval+v.run.Timing.Jitter) + v.run.Timing.ProbeTimeout + v.run.Timing.WriteTimeout + v.tolerance()
		for _, r := range tried[i : i+sustained] {
			took := v.run.Timing.ProbeTimeout + v.run.Timing.WriteTimeout
			if probed := v.plugins.probedAt(node, write{entries: r.body.reportOf(node)}); !probed.IsZero() && probed.Before(r.at) {
				took = min(took, r.at.Sub(probed))
			}
			most += took
		}
		f.JudgedAt(during.from, during.to)
		if during.length() > most {
			f.Violate(Violation{At: last.received, From: first.received, To: first.received.Add(most), Seq: last.seq, Node: node,
				Seen: "the reporter of " + node + " wrote " + number(int64(sustained)) + " times within " + short(during.length()) + " while it could write", Allowed: "a write for each tick: so many within " + short(most)})
			i += sustained - 1
		}
	}
}

func gaps(all []*request) (out []time.Duration) {
	for i, r := range all[1:] {
		out = append(out, r.received.Sub(all[i].received))
	}
	return out
}

// judgeFast: ticks cannot be seen, only the writes that follow them after up to R + W. So the rate is judged over
// 1, 2, 4 … 32 writes: k of them need k ticks.
func judgeFast(v *Facts, f *Finding, node string, writes []write, what, rule string, lives []span) {
	slack := v.run.Timing.ProbeTimeout + v.run.Timing.WriteTimeout + v.tolerance()
	for _, life := range lives {
		var at []write
		for _, w := range writes {
			if life.has(w.from) {
				at = append(at, w)
			}
		}
		for k := 1; k <= 32; k *= 2 {
			least := time.Duration(k)*v.run.Timing.CadenceMin() - slack
			for i := 0; i+k < len(at); i++ {
				f.JudgedAt(at[i].from, at[i+k].from)
				if took := at[i+k].from.Sub(at[i].from); took < least {
					f.Violate(Violation{Rule: rule, At: at[i+k].from, since: at[i].from.Add(-v.run.Timing.ProbeTimeout - v.run.Timing.WriteTimeout), Seq: at[i+k].seq, Node: node, Seen: number(int64(k)) + " " + what + " of " + node + " within " + short(took) + " after one",
						Allowed: "no fewer than " + short(least) + " for so many (I − J each)"})
				}
			}
		}
	}
}

// ticksOf are the writes that a tick brought. A reporter that streams reports again what it has reported, or could not, whenever a new stream stands
// (docs/contract.md, "Streaming"): there each result counts once, from its probe on.
func ticksOf(v *Facts, node string, writes []write) []write {
	if v.run.Connectivity != history.ConnectStream {
		return writes
	}
	out := slices.CompactFunc(slices.Clone(writes), func(a, b write) bool { return slices.Equal(a.entries, b.entries) })
	for i := range out {
		if probed := v.plugins.probedAt(node, out[i]); !probed.IsZero() && probed.Before(out[i].from) {
			out[i].from = probed
		}
	}
	return out
}

// runsOf cuts the run where the reporter of node was started or resumed: its ticks begin anew there. While two of them ran, both write at
// their own rate: that time is left out.
func (ps *processFacts) runsOf(node string) []span {
	reporter := process{role: history.RoleReporter, node: node}
	cuts := []time.Time{ps.facts.complete.from}
	for _, c := range ps.procs[reporter] {
		if c.event == history.ProcessStarted || c.event == history.ProcessResumed {
			cuts = append(cuts, c.at)
		}
	}
	var out []span
	for i, from := range cuts {
		to := ps.facts.complete.to.Add(time.Second)
		if i+1 < len(cuts) {
			to = cuts[i+1]
		}
		for _, two := range ps.doubled[reporter] {
			if two.from.Equal(from) {
				from = two.to
			}
		}
		out = append(out, span{from, latest(from, to)})
	}
	return out
}
