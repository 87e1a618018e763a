package invariants

import (
	"fmt"
	"slices"
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/check/facts"
	"github.com/kmsharness/kmsharness/harness/check/span"
	"github.com/kmsharness/kmsharness/harness/check/text"
	"github.com/kmsharness/kmsharness/harness/history"
)

// A reporter that still runs may write the report of a node that is gone, so the bound counts from its last write, too.
func judgeNoOrphan(v *facts.Facts) (f Finding) {
	bound := v.CleanupBound() + v.Tolerance
	for _, node := range v.Reports.Nodes() {
		for _, orphan := range v.Expectations.NotNode(node).Intersect(v.Reports.Present(node)) {
			f.judgedIn(orphan)
			for _, late := range overdue(orphan, reportsWritten(v, node), bound, cleaning(v, node, orphan, bound)) {
				f.Violate(Violation{At: late.From, From: orphan.From, To: late.From, Node: node, Seen: "the report of " + node + " still stands, " + text.Short(late.From.Sub(orphan.From)) + " after the node (or KMS) was gone",
					Allowed: "removed within " + text.Short(bound) + " after its last writer stopped"})
			}
		}
	}
	inactive := v.Expectations.KMSInactive()
	for _, t := range contract.RollupTypes() {
		for s, orphan := range span.Within(v.CR.Of(t), inactive) {
			if s.Value == nil {
				continue
			}
			f.judgedIn(orphan)
			for _, late := range overdue(orphan, nil, bound, v.Aggregator.Able) {
				f.Violate(Violation{At: late.From, From: orphan.From, To: late.From, Seq: s.Seq, Seen: text.Condition(s.Value) + ", although KMS is not active", Allowed: "absent within " + text.Short(bound) + " after KMS was disabled"})
			}
		}
	}
	return f
}

// cleaning is when an aggregator could have removed the orphaned report of a node. One that claims a time to come, since its node's clock
// was ahead, counts from when the aggregator first saw it.
func cleaning(v *facts.Facts, node string, orphan span.Span, bound time.Duration) span.Set {
	if v.Clocks.Ahead(node, orphan.Grow(v.StaleBound(), 0)) > 0 {
		return v.Aggregator.InCharge.Settled(bound)
	}
	return v.Aggregator.Able
}

// overdue returns the first span in which an orphan stood for longer than bound since it became one or was last written,
// while the aggregator could have removed it. One violation for one orphan is enough: the rest of the span has the same
// cause.
func overdue(orphan span.Span, written []span.Span, bound time.Duration, able span.Set) span.Set {
	late := span.Set{orphan}.Settled(bound).Intersect(span.Grown(written, 0, bound).Complement(orphan)).Intersect(able)
	return late[:min(1, len(late))] // one violation for one orphan
}

// reportsWritten are the instants at which a report of node was written, by the system under test or by others.
func reportsWritten(v *facts.Facts, node string) (out []span.Span) {
	for _, s := range v.Reports[node] {
		if s.Value != nil {
			out = append(out, span.New(s.From, s.From))
		}
	}
	for _, w := range v.Reporters.Writes(node) {
		out = append(out, span.New(w.To, w.To))
	}
	return out
}

// An aggregator cannot tell a reporter that shuts down from one that lives on. So one return is allowed, for the write
// that was under way; a second one shows that reporter and aggregator fight over the entry.
func judgeNoResurrection(v *facts.Facts) (f Finding) {
	for _, node := range v.Reports.Nodes() {
		judgeEnding(v, &f, node)
		right := v.Clocks.Settled("").Intersect(v.Clocks.Settled(node)) // by two clocks that differ, a live reporter's entry is one that is no longer written
		reporter := facts.Reporter(node)
		alive := v.Processes.While(reporter, facts.Up, facts.Starting, facts.Paused)
		expected := v.Expectations.Node(node)
		kept := keptByOperator(v).Intersect(alive)
		var returned time.Time
		returns := 0 // since the reporter was last started
		states := v.Reports[node]
		for i, c := range states {
			if c.Value == nil {
				f.JudgedAt(c.From, c.From)
			}
			if c.Value == nil || i == 0 || states[i-1].Value != nil {
				continue
			}
			since, gone := states[i-1].From, states[i-2].Value // a report stands before it is removed
			if c.Value.Foreign || !right.Contains(since) || kept.Covers(span.New(since, c.From)) && staleAt(v, gone, since) || expected.Overlaps(span.New(c.From, c.From).Grow(v.Tolerance+1, 1)) {
				continue
			}
			if v.Processes.StartedIn(reporter, since, c.From) {
				returns = 0
				continue
			}
			if v.Processes.StartedIn(reporter, returned, c.From) || expected.Overlaps(span.New(returned, since)) { // in an earlier run, or expected in between
				returns = 0
			}
			returns, returned = returns+1, c.From
			allowed, want := 0, "never: no reporter of that node was running when it was removed"
			if alive.Overlaps(span.New(since, since).Grow(v.Tolerance+1, 1)) || len(v.Processes.States[reporter]) == 0 {
				allowed, want = 1, "once, by a reporter that was still shutting down"
			}
			if returns > allowed {
				f.Violate(Violation{At: c.From, Since: lastAlive(alive, since), Seq: c.Seq, Node: node, Seen: fmt.Sprintf("the removed report of %s came back (%d since its reporter was started)", node, returns),
					Allowed: want})
			}
		}
	}
	return f
}

// judgeEnding judges that of a reporter that is asked to end (SIGTERM) only the write that was under way arrives. A
// reporter that removes its entry at its end would make a restart look like a missing node.
func judgeEnding(v *facts.Facts, f *Finding, node string) {
	for _, a := range v.Actions.All {
		if !a.EndsReporter(node) || a.Param("with") != "" || a.Param("overlap") != "" { // nobody asked it to end, or not at once
			continue
		}
		i := slices.IndexFunc(v.Processes.States[facts.Reporter(node)], func(s facts.ProcessState) bool {
			return (s.Event == history.ProcessStopped || s.Event == history.ProcessKilled) && s.From.After(a.From) && !s.From.After(a.To)
		})
		if i < 0 {
			continue
		}
		ended := v.Processes.States[facts.Reporter(node)][i].From
		f.JudgedAt(a.From, ended)
		for _, r := range v.Requests.Tried[node] {
			if r.IsApply() && r.Body.Known && !r.Body.Has(node) && !r.Received.Before(a.From) && !r.Received.After(ended) {
				f.Violate(Violation{Rule: "removal", At: r.At, Since: a.From, Seq: r.Seq, Node: node, Seen: "the reporter of " + node + " removed its entry when it was asked to end",
					Allowed: "an entry that stays: in a restart nothing is known of the node until the next report"})
			}
		}
		writes := slices.DeleteFunc(slices.Clone(v.Reporters.Writes(node)), func(w facts.Write) bool { return w.From.Before(a.From) || w.From.After(ended) })
		if len(writes) > 1 {
			f.Violate(Violation{Rule: "last-writes", At: writes[1].From, Since: a.From, Seq: writes[1].Seq, Node: node, Seen: fmt.Sprintf("%d writes after the reporter of %s was asked to end", len(writes), node),
				Allowed: "one, that was under way"})
		}
	}
}

// lastAlive is when a process was last alive at or before an instant, as far as that is known.
func lastAlive(alive span.Set, at time.Time) time.Time {
	if before := alive.Clip(span.New(time.Time{}, at)); len(before) > 0 {
		return before[len(before)-1].To
	}
	return at
}

// keptByOperator is when an operator may still need reports although KMS is no longer asked for: it finishes the key that it has begun, and
// makes the next one only while the plugins of this one are well. Reporters go on until then, and write again what was removed as stale
// (docs/contract.md, Switching the encryption).
func keptByOperator(v *facts.Facts) span.Set {
	if v.Run.Lifecycle != history.LifecycleOperator {
		return nil
	}
	return v.Expectations.KMSActive().Complement(v.Period)
}

// staleAt reports whether a report was no longer fresh: then nobody fought its reporter by taking it away.
func staleAt(v *facts.Facts, r *facts.Report, at time.Time) bool {
	return !slices.ContainsFunc(r.Entries, func(e facts.Entry) bool {
		return contract.FreshnessAt(at.Add(v.Tolerance), e.Checked, v.Interval) != contract.Stale
	})
}
