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
		Statement: "a removed entry does not come back unless a reporter for that node was started again; a reporter that was still shutting down may re-create it once, for one that is asked to end writes at most once more",
		Source:    "The aggregator, cleanup",
		judge:     judgeNoResurrection,
	}
}

func judgeNoResurrection(v *view) (f Finding) {
	for _, node := range v.reportingNodes() {
		v.judgeEnding(&f, node)
		right := v.clockRight("").and(v.clockRight(node)) // by two clocks that differ, a live reporter's entry is one that is no longer written
		reporter := process{role: history.RoleReporter, node: node}
		alive := v.in(reporter, procUp, procStarting, procPaused)
		expected := v.nodeExpected(node)
		kept := v.keptByOperator().and(alive)
		var last *report
		var removed time.Time
		var returned time.Time
		returns := 0 // since the reporter was last started
		for _, c := range v.reports[node] {
			if c.rep == nil {
				f.judgedAt(c.at, c.at)
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
			if c.rep.foreign || !right.has(since) || kept.covers(span{since, c.at}) && v.staleAt(gone, since) || expected.touches(span{c.at.Add(-v.tolerance() - 1), c.at.Add(1)}) {
				continue
			}
			if v.startedIn(reporter, since, c.at) {
				returns = 0
				continue
			}
			if v.startedIn(reporter, returned, c.at) || expected.touches(span{returned, since}) { // a life ago, or expected in between
				returns = 0
			}
			returns, returned = returns+1, c.at
			allowed := 0
			if alive.touches(span{since.Add(-v.tolerance() - 1), since.Add(1)}) || len(v.procs[reporter]) == 0 {
				allowed = 1
			}
			if returns > allowed {
				f.violate(Violation{At: c.at, since: lastAlive(alive, since), Seq: c.seq, Node: node, Seen: "the removed report of " + node + " came back (" + number(int64(returns)) + " since its reporter was started)",
					Allowed: map[bool]string{true: "once, by a reporter that was still shutting down", false: "never: no reporter of that node was running when it was removed"}[allowed == 1]})
			}
		}
	}
	return f
}

// judgeEnding: of a reporter that is asked to end, the write that was under way may still arrive, and no other.
func (v *view) judgeEnding(f *Finding, node string) {
	for _, a := range v.actions {
		if a.Verb != "stop" && a.Verb != "restart" || !slices.ContainsFunc(strings.FieldsFunc(a.Target, func(r rune) bool { return r == ' ' || r == ',' }), func(word string) bool {
			return word == history.RoleReporter || word == history.RoleReporter+"/"+node
		}) {
			continue
		}
		i := slices.IndexFunc(v.procs[process{role: history.RoleReporter, node: node}], func(c procChange) bool {
			return c.event == history.ProcessStopped && c.at.After(a.from) && !c.at.After(a.to)
		})
		if i < 0 { // killed
			continue
		}
		ended := v.procs[process{role: history.RoleReporter, node: node}][i].at
		f.judgedAt(a.from, ended)
		writes := slices.DeleteFunc(slices.Clone(v.writesOf(node)), func(w write) bool { return w.from.Before(a.from) || w.from.After(ended) })
		if len(writes) > 1 {
			f.violate(Violation{At: writes[1].from, since: a.from, Seq: writes[1].seq, Node: node, Seen: number(int64(len(writes))) + " writes after the reporter of " + node + " was asked to end",
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
func (v *view) keptByOperator() spans {
	if v.run.Lifecycle != history.LifecycleOperator {
		return nil
	}
	return v.active().not(v.whole)
}

// staleAt is whether a report was no longer fresh: then nobody fought its reporter by taking it away.
func (v *view) staleAt(r *report, at time.Time) bool {
	return r != nil && !slices.ContainsFunc(r.entries, func(e entry) bool {
		return contract.FreshnessAt(at.Add(v.tolerance()), e.checked, v.interval()) != contract.Stale
	})
}

// startedIn says whether the process was started in (from, to].
func (v *view) startedIn(k process, from, to time.Time) bool {
	for _, c := range v.procs[k] {
		if c.event == history.ProcessStarted && c.at.After(from) && !c.at.After(to) {
			return true
		}
	}
	return false
}
