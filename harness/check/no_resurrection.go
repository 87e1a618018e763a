package check

import (
	"slices"
	"strings"
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/history"
)

func noResurrection() Invariant {
	return Invariant{
		ID:        "NO-RESURRECTION",
		Statement: "a removed entry does not come back unless a reporter for that node was started again; a reporter that was still shutting down may re-create it once, for one that is asked to end writes at most once more, and removes nothing",
		Source:    "The aggregator, cleanup",
		Rules: []Rule{
			{Code: ruleLastWrites, Statement: "a reporter that is asked to end writes at most once more"},
			{Code: ruleRemoval, Statement: "a reporter that ends leaves its entry, which the aggregator removes once nobody needs it", House: true},
		},
		Timed: AllTimed,
		Judge: judgeNoResurrection,
	}
}

func judgeNoResurrection(v *Facts) (f Finding) {
	for _, node := range v.objects.reportingNodes() {
		judgeEnding(v, &f, node)
		right := v.clocks.settled("").and(v.clocks.settled(node)) // by two clocks that differ, a live reporter's entry is one that is no longer written
		reporter := process{role: history.RoleReporter, node: node}
		alive := v.processes.in(reporter, procUp, procStarting, procPaused)
		expected := v.expectations.ofNode(node)
		kept := keptByOperator(v).and(alive)
		var last *report
		var removed time.Time
		var returned time.Time
		returns := 0 // since the reporter was last started
		for _, c := range v.objects.reports[node] {
			if c.rep == nil {
				f.JudgedAt(c.at, c.at)
				removed = c.at
				continue
			}
			gone := last
			last = c.rep
			if removed.IsZero() {
				continue
			}
			since := removed
			removed = time.Time{}
			if c.rep.foreign || !right.has(since) || kept.covers(span{since, c.at}) && staleAt(v, gone, since) || expected.touches(span{c.at.Add(-v.tolerance() - 1), c.at.Add(1)}) {
				continue
			}
			if v.processes.startedIn(reporter, since, c.at) {
				returns = 0
				continue
			}
			if v.processes.startedIn(reporter, returned, c.at) || expected.touches(span{returned, since}) { // a life ago, or expected in between
				returns = 0
			}
			returns, returned = returns+1, c.at
			allowed := 0
			if alive.touches(span{since.Add(-v.tolerance() - 1), since.Add(1)}) || len(v.processes.procs[reporter]) == 0 {
				allowed = 1
			}
			if returns > allowed {
				f.Violate(Violation{At: c.at, since: lastAlive(alive, since), Seq: c.seq, Node: node, Seen: "the removed report of " + node + " came back (" + number(int64(returns)) + " since its reporter was started)",
					Allowed: map[bool]string{true: "once, by a reporter that was still shutting down", false: "never: no reporter of that node was running when it was removed"}[allowed == 1]})
			}
		}
	}
	return f
}

// judgeEnding: of a reporter that is asked to end, the write that was under way may still arrive, and no other.
func judgeEnding(v *Facts, f *Finding, node string) {
	for _, a := range v.plugins.actions {
		if a.Verb != "stop" && a.Verb != "restart" || !slices.ContainsFunc(strings.FieldsFunc(a.Target, func(r rune) bool { return r == ' ' || r == ',' }), func(word string) bool {
			return word == history.RoleReporter || word == history.RoleReporter+"/"+node
		}) {
			continue
		}
		if a.param("with") != "" || a.param("overlap") != "" { // nobody asked it to end, or not at once
			continue
		}
		i := slices.IndexFunc(v.processes.procs[process{role: history.RoleReporter, node: node}], func(c procChange) bool {
			return (c.event == history.ProcessStopped || c.event == history.ProcessKilled) && c.at.After(a.from) && !c.at.After(a.to)
		})
		if i < 0 {
			continue
		}
		ended := v.processes.procs[process{role: history.RoleReporter, node: node}][i].at
		f.JudgedAt(a.from, ended)
		for _, n := range v.requests.requestsOf[node] {
			r := &v.requests.all[n]
			if r.write && r.onCR && r.isApply() && r.body.ok && !r.body.has(node) && !r.received.Before(a.from) && !r.received.After(ended) {
				f.Violate(Violation{Rule: ruleRemoval, At: r.at, since: a.from, Seq: r.seq, Node: node, Seen: "the reporter of " + node + " removed its entry when it was asked to end",
					Allowed: "an entry that stays: in a restart nothing is known of the node until the next report"})
			}
		}
		writes := slices.DeleteFunc(slices.Clone(v.requests.writesOf(node)), func(w write) bool { return w.from.Before(a.from) || w.from.After(ended) })
		if len(writes) > 1 {
			f.Violate(Violation{Rule: ruleLastWrites, At: writes[1].from, since: a.from, Seq: writes[1].seq, Node: node, Seen: number(int64(len(writes))) + " writes after the reporter of " + node + " was asked to end",
				Allowed: "one, that was under way"})
		}
	}
}

// lastAlive is when a process was last alive at or before an instant, as far as that is known.
func lastAlive(alive spans, at time.Time) time.Time {
	for _, s := range slices.Backward(alive) {
		if s.from.Before(at) {
			return earliest(s.to, at)
		}
	}
	return at
}

// keptByOperator is when an operator may still need reports although KMS is no longer asked for: it finishes the key that it has begun, and
// makes the next one only while the plugins of this one are well. Reporters go on until then, and write again what was removed as stale
// (docs/contract.md, Switching the encryption).
func keptByOperator(v *Facts) spans {
	if v.run.Lifecycle != history.LifecycleOperator {
		return nil
	}
	return v.expectations.active().not(v.complete)
}

// staleAt is whether a report was no longer fresh: then nobody fought its reporter by taking it away.
func staleAt(v *Facts, r *report, at time.Time) bool {
	return r != nil && !slices.ContainsFunc(r.entries, func(e entry) bool {
		return contract.FreshnessAt(at.Add(v.tolerance()), e.checked, v.interval()) != contract.Stale
	})
}

// startedIn says whether the process was started in (from, to].
func (ps *processFacts) startedIn(k process, from, to time.Time) bool {
	for _, c := range ps.procs[k] {
		if c.event == history.ProcessStarted && c.at.After(from) && !c.at.After(to) {
			return true
		}
	}
	return false
}
