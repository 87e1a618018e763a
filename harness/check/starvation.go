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
//  1. The invariant is a matter of time (dependencies has a row for each invariant). What a write says is no matter of time.
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

// dependency states how CPU starvation can cause violations of an invariant.
type dependency struct {
	// window is when starvation can have caused a violation; nil: never.
	window func(v *view, x Violation) span
	// reporter: a violation depends on what a report depends on: the node's reporter, plugins and API server. aggregator: it depends on what a
	// rollup depends on: the aggregator and the API servers. Both depend on what is shared.
	reporter, aggregator bool
	// exact: no bound is made longer. The time that a probe lost is known.
	exact bool
	why   string
}

// dependencies is the table.
func dependencies() map[string]dependency {
	before := func(reach func(v *view) time.Duration) func(*view, Violation) span {
		return func(v *view, x Violation) span { return span{x.At.Add(-reach(v)), x.At} }
	}
	sinceCause := func(v *view, x Violation) span { return span{x.cause(), x.At} }
	detection := before(func(v *view) time.Duration { return v.run.Timing.DetectionBound() + v.tolerance() })
	recovery := before(func(v *view) time.Duration { return v.run.Timing.RecoveryBound() + v.tolerance() })
	latency := before(func(v *view) time.Duration { return v.latency() })
	age := before(func(v *view) time.Duration { return v.run.Timing.MaxProbeAge() + v.tolerance() })
	restart := func(v *view, x Violation) span { return span{x.At, x.At.Add(v.interval() + v.tolerance())} }
	ofBoth := func(window func(*view, Violation) span, why string) dependency {
		return dependency{window: window, reporter: true, aggregator: true, why: why}
	}
	ofReporter := func(window func(*view, Violation) span, why string) dependency {
		return dependency{window: window, reporter: true, why: why}
	}
	ofAggregator := func(window func(*view, Violation) span, why string) dependency {
		return dependency{window: window, aggregator: true, why: why}
	}
	never := func(why string) dependency { return dependency{why: why} }
	probe := ofReporter(age, "content, but for an error that reports that its deadline passed when most of that time was starved")
	probe.exact = true
	return map[string]dependency{
		"FALSE-HEALTHY":         ofBoth(detection, "a bound: what stays False for longer is a mistake"),
		"FALSE-ALARM":           ofBoth(recovery, "a bound, and a probe that ran out of time is an error that no plugin made"),
		"DETECTION":             ofBoth(detection, "a bound: what is not named after it is a mistake"),
		"RECOVERY":              ofBoth(recovery, "a bound: what is still named after it is a mistake"),
		"STALE-UNKNOWN":         ofAggregator(latency, "a bound of the aggregator; 4 I is measured by a clock, which nothing starves"),
		"ABSENCE-IS-NOT-BROKEN": ofAggregator(latency, "a bound of the aggregator"),
		"NO-ORPHAN":             ofAggregator(latency, "a bound of the aggregator"),
		"NO-RESURRECTION":       ofReporter(sinceCause, "a write that was in flight when its reporter was stopped takes effect late, after the removal"),
		AcceptedID:              never("content"),
		"OWNERSHIP":             never("content"),
		"MONOTONIC":             never("content: late is not backwards"),
		"FRESH-ONLY":            ofReporter(age, "a bound: starvation between probe and write makes the probe older"),
		"CADENCE":               ofReporter(sinceCause, "a bound; a reporter that was starved writes late, and sooner after that"),
		"TRUTHFUL-PROBE":        probe,
		"FORMAT":                never("content"),
		"ROLLUP-TRUTH":          ofAggregator(latency, "a bound of the aggregator: what is still wrong after it is a mistake"),
		"QUIET":                 ofAggregator(latency, "a write may be caused by something that is longer ago"),
		"UNION":                 ofAggregator(latency, "a bound of the aggregator: what is still wrong after it is a mistake"),
		"CONVERGENCE":           ofAggregator(latency, "a bound of the aggregator"),
		"UID":                   never("content"),
		"NO-DATA-LOSS":          never("content"),
		"SWITCH-ORDER":          ofReporter(restart, "order, but for a plugin that is started again at once: that has a bound"),
		"LEAST-PRIVILEGE":       never("content"),
		"KEY-ID-STABLE":         never("content"),
		"NOTHING-SECRET":        never("content"),
		"NOTHING-RAN":           never("content, but for what a starved expectation left undone (decide)"),
	}
}

// concerns reports whether starvation of a process can cause violations of a node, or, where node is empty, of any.
func (d dependency) concerns(v *view, node string) func(process) bool {
	return func(p process) bool {
		switch p.role {
		case history.RoleHarness, history.RoleEtcd, history.RoleLoadBalancer, history.RoleRemoteKMS:
			return true // shared
		case history.RoleAggregator:
			return d.aggregator
		case history.RoleAPIServer:
			if d.aggregator || v.run.Connectivity == connectService { // through the load balancer: any of them may have served the request
				return true
			}
		}
		return d.reporter && (node == "" || p.node == node)
	}
}

// lost is what starvation costs beyond its own length. A probe or a write whose deadline runs out is tried again with the next tick; an aggregator
// that cannot renew its lease is in charge again after a takeover.
func (d dependency) lost(v *view, starved time.Duration) (more time.Duration) {
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
	// starvationPrecision is the period of the timer that notices starvation (harness/stall).
	starvationPrecision = 50 * time.Millisecond
)

// Starved is a violation that CPU starvation explains.
type Starved struct {
	Violation
	// Why names the process that was starved longest, for how long and when.
	Why string `json:"why"`
}

// explain moves the violations of a finding that starvation explains to its Starved.
func (v *view) explain(i Invariant, f Finding) Finding {
	d := dependencies()[i.ID]
	if d.window == nil || len(v.starved) == 0 || f.Count == 0 || f.Count > len(f.Violations) {
		return f
	}
	kept := f.Violations[:0:0]
	for _, x := range f.Violations {
		if why, starved := v.explained(i, d, x, f.Violations); starved {
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
func (v *view) explained(i Invariant, d dependency, x Violation, all []Violation) (why string, starved bool) {
	total, longest := v.starvedIn(d.window(v, x), d.concerns(v, x.Node))
	if total <= v.tolerance() {
		return "", false
	}
	added := total + d.lost(v, total)
	added = (added + starvationPrecision - 1).Truncate(starvationPrecision) // few different ones, for each of which the history is digested again
	if d.exact {
		added = 0
	}
	again := v.tolerating(added).judgedOnce(i)
	if again.Count > len(again.Violations) {
		return "", false
	}
	for _, y := range again.Violations {
		if y.sameCause(x) || x.near(y, added) && !slices.ContainsFunc(all, y.sameCause) {
			return "", false
		}
	}
	return longest.text() + " at +" + short(longest.from.Sub(v.whole.from)) + ", " + short(total) + " in all that can have caused it", true
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

// starvedExpectation reports whether starvation explains a failed expectation, and by what.
func (v *view) starvedExpectation(e history.Event) (why string, starved bool) {
	x, bound := e.Expectation, v.run.Timing.DetectionBound()
	waited := max(x.Took, bound)
	total, longest := v.starvedIn(span{e.At.Add(-waited), e.At}, func(process) bool { return true })
	if total.Seconds() <= v.tolerance().Seconds()*waited.Seconds()/bound.Seconds() {
		return "", false
	}
	return fmt.Sprintf("expectation %s (%s %s) failed at +%s: %s at +%s, %s in all of the %s before that", x.ID, x.Mode, x.Text,
		short(e.At.Sub(v.whole.from)), longest.text(), short(longest.from.Sub(v.whole.from)), short(total), short(waited)), true
}
