package check

import (
	"cmp"
	"slices"
	"time"

	"github.com/kmsharness/kmsharness/harness/check/span"
	"github.com/kmsharness/kmsharness/harness/check/text"
	"github.com/kmsharness/kmsharness/harness/history"
)

// layer is a stage on the path from a program to what an administrator sees. What goes wrong in one layer can cause what goes wrong in a later one,
// never in an earlier one. The order of all findings follows from it (Verdict.Failing).
type layer int

const (
	layerExited   layer = iota // a process that exited on its own
	layerRefused               // what an API server refuses, or should
	layerOwned                 // who writes, and under which name
	layerWritten               // what writes contain
	layerAnswered              // what is reported of the plugins' answers
	layerPaced                 // when reports are written
	layerDerived               // what is decided from reports, and about encryption
	layerShown                 // what an administrator sees, and when
	layerSteps                 // expectations and actions of the scenario
	layerNothing               // nothing was judged, since the scenario did not get that far
	layers
)

// layerRow is one row of the causal order.
type layerRow struct {
	ids []string
	// from is the first layer in which they have consequences.
	from layer
}

// causalOrder has a row for each layer. An invariant in no row, which a caller has of its own, is in layerDerived.
func causalOrder() [layers]layerRow {
	return [layers]layerRow{
		layerExited:   {[]string{NoExitID}, layerRefused},
		layerRefused:  {[]string{AcceptedID, "LEAST-PRIVILEGE"}, layerAnswered},
		layerOwned:    {[]string{"OWNERSHIP"}, layerPaced},
		layerWritten:  {[]string{"FORMAT"}, layerShown},
		layerAnswered: {[]string{"TRUTHFUL-PROBE"}, layerShown},
		layerPaced:    {[]string{"CADENCE", "FRESH-ONLY", "MONOTONIC"}, layerShown},
		layerDerived: {[]string{"NO-FORGED-EXCUSE", "NO-DATA-LOSS", "SWITCH-ORDER", "OPERATOR-CONVERGENCE", "ENCRYPTED", "CONDITION-ENDS", "KEY-ID-STABLE", "UID", "NOTHING-SECRET", "CONVERGENCE", "ROLLUP-TRUTH", "AGREEMENT", "AGREEMENT-PRUNED", "STREAM-TRUTH",
			"UNION", "QUIET", "NO-ORPHAN", "NO-RESURRECTION", "ABSENCE-IS-NOT-BROKEN", "STALE-UNKNOWN"}, layerShown},
		layerShown:   {[]string{"FALSE-HEALTHY", "FALSE-ALARM", "DETECTION", "RECOVERY", "AGREEMENT-DEGRADED"}, layerSteps},
		layerSteps:   {nil, layers},
		layerNothing: {[]string{"NOTHING-RAN"}, layers},
	}
}

func layerOf(id string) layer {
	for l, row := range causalOrder() {
		if slices.Contains(row.ids, id) {
			return layer(l)
		}
	}
	return layerDerived
}

// Failing is one thing that did not hold: an invariant, an expectation or an action.
type Failing struct {
	ID     string        `json:"id"`
	At     time.Time     `json:"at"`
	Offset time.Duration `json:"offset"`
	// Because names the failing thing that caused it; empty if none did.
	Because string `json:"because,omitempty"`

	layer   layer
	cause   string        // the id that Because names
	problem string        // what Verdict.Problems has of an expectation or action
	starved string        // how CPU starvation explains it; empty if it does not
	took    time.Duration // how long that was waited for
}

// order fills Failing and each Because: what has no cause among the others is sorted by layer and time, and its consequences stand behind it.
func (out *Verdict) order(run history.Run, steps []Failing) {
	stale := run.Timing.StaleBound()
	known := out.knownCauses()
	var all []Failing
	for i := range out.Invariants {
		r := &out.Invariants[i]
		if r.Status != Failed || len(r.Violations) == 0 {
			continue
		}
		in, causeOf := layerOf(r.ID), map[string]string{}
		for n := range r.Violations {
			x := &r.Violations[n]
			// It depends on reports or on the rollup, or the scenario ended before it was judged.
			if r.timed || in == layerNothing && len(steps) > 0 {
				cause, because := follows(*x, in, known, stale)
				x.Because, causeOf[because] = because, cause
			}
		}
		// What has no cause comes first: it makes the invariant a finding of its own.
		slices.SortStableFunc(r.Violations, func(a, b Violation) int { return cmp.Compare(min(1, len(a.Because)), min(1, len(b.Because))) })
		first := r.Violations[0]
		all = append(all, Failing{ID: r.ID, At: first.At, Offset: first.Offset, Because: first.Because, layer: in, cause: causeOf[first.Because], starved: r.starved})
	}
	for _, s := range steps {
		s.layer = layerSteps
		s.cause, s.Because = follows(Violation{At: s.At, Since: s.At.Add(-s.took)}, layerSteps, known, stale)
		all = append(all, s)
	}
	slices.SortStableFunc(all, func(a, b Failing) int { return cmp.Or(cmp.Compare(a.layer, b.layer), a.At.Compare(b.At)) })
	out.Failing = behind("", all)
}

// knownCauses are the violations that fail the run, in the causal order.
func (out *Verdict) knownCauses() (known []Violation) {
	for _, r := range out.Invariants {
		if r.Status != Failed || len(r.Violations) == 0 {
			continue
		}
		known = append(known, r.Violations...)
		if last := &known[len(known)-1]; r.Count > len(r.Violations) { // it was violated again, until the end for all that is known
			last.To = span.Latest(last.To, last.At.Add(out.Duration-last.Offset))
		}
	}
	slices.SortStableFunc(known, func(a, b Violation) int {
		return cmp.Or(cmp.Compare(layerOf(a.Invariant), layerOf(b.Invariant)), a.At.Compare(b.At))
	})
	return known
}

// follows returns the first of known that can have caused a violation in a layer. It was there before, on the same node and API server, and no longer ago than a report stays fresh.
func follows(x Violation, in layer, known []Violation, stale time.Duration) (cause, because string) {
	for _, c := range known {
		of := layerOf(c.Invariant)
		elsewhere := c.Node != x.Node && (in < layerDerived || c.Node != "" && x.Node != "") || c.APIServer != x.APIServer && in < layerSteps
		if of >= in || in < causalOrder()[of].from || elsewhere || c.Harmless {
			continue
		}
		if !earliest(c).After(x.At) && span.Latest(c.At, c.To).Add(stale).After(earliest(x)) {
			return c.Invariant, c.Invariant + " at +" + text.Short(c.Offset)
		}
	}
	return "", ""
}

// earliest is when the cause of a violation can have begun.
func earliest(x Violation) time.Time { return cmp.Or(x.Since, x.From, x.At) }

// behind returns what follows from a cause, each with what follows from it.
func behind(cause string, all []Failing) (sorted []Failing) {
	for _, f := range all {
		if f.cause == cause {
			sorted = append(sorted, f)
			if f.layer != layerSteps { // nothing follows from a step
				sorted = append(sorted, behind(f.ID, all)...)
			}
		}
	}
	return sorted
}
