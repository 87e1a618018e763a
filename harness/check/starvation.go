package check

import (
	"fmt"
	"slices"
	"time"

	"github.com/kmsharness/kmsharness/harness/history"
)

// CPU starvation is one rule.
//
// Every bound has a tolerance, which is there for scheduling noise. Starvation beyond it explains a violation if all of this holds:
//
//  1. The invariant is a matter of time (Invariant.Tolerance). What a write says is no matter of time.
//  2. Processes that the violation depends on were starved for longer than the tolerance in the window before it. Those of another node do not
//     count, but for what all nodes share.
//  3. Judged again with a tolerance that is longer by the starvation, and by what a deadline that ran out costs (lost), the violation is gone.
//     A violation far beyond that stays.
//
// A failed expectation has no bound that could be made longer: its text is anything. Instead, the starvation must exceed the tolerance once for
// each detection bound that the expectation waited.
//
// An explained violation is neither a failure of the subject nor a pass. A run in which something did not hold, and all of that is explained, is
// inconclusive (decide).

// Tolerance states how CPU starvation can cause violations of an invariant, beyond the tolerance that every bound has. The zero value: it cannot.
type Tolerance struct {
	// Why is the reason, for people.
	Why string

	// window is when starvation can have caused a violation; nil: never.
	window func(v *Facts, x Violation) span
	// reporter: a violation depends on what a report depends on: the node's reporter, plugins and API server. aggregator: it depends on what a
	// rollup depends on: the aggregator and the API servers. Both depend on what is shared.
	reporter, aggregator bool
	// exact: no bound is made longer. The time that a probe lost is known.
	exact bool
}

func before(x Violation, reach time.Duration) span { return span{x.At.Add(-reach), x.At} }

func detectionWindow(v *Facts, x Violation) span {
	return before(x, v.run.Timing.DetectionBound()+v.tolerance())
}

func recoveryWindow(v *Facts, x Violation) span {
	return before(x, v.run.Timing.RecoveryBound()+v.tolerance())
}

func latencyWindow(v *Facts, x Violation) span { return before(x, v.latency()) }

func ageWindow(v *Facts, x Violation) span {
	return before(x, v.run.Timing.MaxProbeAge()+v.tolerance())
}

func causeWindow(_ *Facts, x Violation) span { return span{x.cause(), x.At} }

func restartWindow(v *Facts, x Violation) span {
	return span{x.At, x.At.Add(v.interval() + v.tolerance())}
}

// concerns reports whether starvation of a process can cause violations of a node, or, where node is empty, of any.
func (d Tolerance) concerns(v *Facts, node string) func(process) bool {
	return func(p process) bool {
		switch p.role {
		case history.RoleHarness, history.RoleEtcd, history.RoleLoadBalancer, history.RoleRemoteKMS:
			return true // shared
		case history.RoleAggregator:
			return d.aggregator
		case history.RoleOperator: // in its pod; no invariant bounds the time of its writes there
			return false
		case history.RoleAPIServer:
			if d.aggregator || history.AnyAPIServer(v.run.Connectivity) { // any of them may have served the request
				return true
			}
		}
		return d.reporter && (node == "" || p.node == node)
	}
}

// lost is what starvation costs beyond its own length. A probe or a write whose deadline runs out is tried again with the next tick; an aggregator
// that cannot renew its lease is in charge again after a takeover.
func (d Tolerance) lost(v *Facts, starved time.Duration) (more time.Duration) {
	if d.reporter {
		deadline := min(v.run.Timing.ProbeTimeout, v.run.Timing.WriteTimeout)
		more += starved / deadline * (v.interval() + v.run.Timing.Jitter)
	}
	if d.aggregator && starved > v.takeover()/3 { // a lease must be renewed in about that time
		more += v.takeover()
	}
	return more
}

const (
	// maxExplained bounds how many violations of one invariant are judged again. More are not caused by starvation.
	maxExplained = 100
	// tolerances is how often one bound may contain the tolerance: a grace that ends late, seen by an aggregator that is late, on a
	// watch that is late. A violation of it comes that many times later.
	tolerances = 4
	// starvationPrecision is the period of the timer that notices starvation (harness/starvation).
	starvationPrecision = 50 * time.Millisecond
)

// Starved is a violation that CPU starvation explains.
type Starved struct {
	Violation
	// Why names the process that was starved longest, for how long and when.
	Why string `json:"why"`
}

// explain moves the violations of a finding that starvation explains to its Starved.
func (sv *starvationFacts) explain(i Invariant, f Finding) Finding {
	d := i.Tolerance
	if d.window == nil || len(sv.spans) == 0 || f.Count == 0 || f.Count > len(f.Violations) {
		return f
	}
	kept := f.Violations[:0:0]
	for _, x := range f.Violations {
		if why, starved := sv.explained(i, x, f.Violations); starved {
			f.Starved = append(f.Starved, Starved{x, why})
			f.Count--
			f.Judged = max(0, f.Judged-1)
			continue
		}
		kept = append(kept, x)
	}
	f.Violations = kept
	return f
}

// explained reports whether starvation explains x, one of all violations, and by what.
func (sv *starvationFacts) explained(i Invariant, x Violation, all []Violation) (why string, starved bool) {
	d := i.Tolerance
	total, longest := sv.in(d.window(sv.facts, x), d.concerns(sv.facts, x.Node))
	if total <= sv.facts.tolerance() {
		return "", false
	}
	added := total + d.lost(sv.facts, total)
	added = (added + starvationPrecision - 1).Truncate(starvationPrecision) // few different ones, for each of which the history is digested again
	if d.exact {
		added = 0
	}
	again := sv.tolerating(added).starvation.judgedOnce(i)
	if again.Count > len(again.Violations) {
		return "", false
	}
	for _, y := range again.Violations {
		if y.sameCause(x) || x.near(y, added) && !slices.ContainsFunc(all, y.sameCause) {
			return "", false
		}
	}
	return longest.text() + " at +" + short(longest.from.Sub(sv.facts.complete.from)) + ", " + short(total) + " in all that can have caused it", true
}

// sameCause reports whether two violations are the same, judged with different tolerances: what they are due to is the same.
func (x Violation) sameCause(y Violation) bool {
	return y.Node == x.Node && y.KeyID == x.KeyID && !x.cause().IsZero() && y.cause().Equal(x.cause())
}

// cause is when the cause of a violation began; zero where that is not known.
func (x Violation) cause() time.Time {
	if !x.since.IsZero() {
		return x.since
	}
	return x.From
}

// near reports whether y can be x, found again with a longer tolerance: it comes about when x does, or later by what was added.
func (x Violation) near(y Violation, added time.Duration) bool {
	return y.Node == x.Node && y.KeyID == x.KeyID && !y.At.Before(x.At.Add(-added)) && !y.At.After(x.At.Add(tolerances*added))
}

// explainedExpectation reports whether starvation explains a failed expectation, and by what.
func (sv *starvationFacts) explainedExpectation(e history.Event) (why string, starved bool) {
	x := e.Expectation
	why, starved = sv.explainedWait(e.At, max(x.Took, sv.facts.run.Timing.DetectionBound()))
	return fmt.Sprintf("expectation %s (%s %s) failed at +%s: %s", x.ID, x.Mode, x.Text, short(e.At.Sub(sv.facts.complete.from)), why), starved
}

// explainedAction reports whether starvation explains a failed action, and by what. It explains only one that ran for at least the detection
// bound: an action that is refused fails at once.
func (sv *starvationFacts) explainedAction(a action) (why string, starved bool) {
	took := a.to.Sub(a.from)
	if took < sv.facts.run.Timing.DetectionBound() {
		return "", false
	}
	why, starved = sv.explainedWait(a.to, took)
	return fmt.Sprintf("action %s (%s %s) failed at +%s: %s: %s", a.ID, a.Verb, a.Target, short(a.to.Sub(sv.facts.complete.from)), quoted(a.failure()), why), starved
}

// explainedWait reports whether starvation explains that something did not come about in the time before at, and describes the starvation.
func (sv *starvationFacts) explainedWait(at time.Time, waited time.Duration) (why string, starved bool) {
	bound := sv.facts.run.Timing.DetectionBound()
	total, longest := sv.in(span{at.Add(-waited), at}, func(process) bool { return true })
	if total.Seconds() <= sv.facts.tolerance().Seconds()*waited.Seconds()/bound.Seconds() {
		return "", false
	}
	return fmt.Sprintf("%s at +%s, %s in all of the %s before that", longest.text(), short(longest.from.Sub(sv.facts.complete.from)), short(total), short(waited)), true
}
