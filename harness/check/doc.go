// Package check judges a history by every invariant of the contract.
//
// It is a pure function of the events: Run(events) gives the same verdict for the same history, live or from a file. It
// computes the expected observations itself (the answers of a plugin from its journal, a rollup from the visible
// reports) and shares with other packages only wire types, limits, names and reasons, so that it does not repeat a
// wrong rule of the reporter or the aggregator.
//
// Package facts has what a history says, package invariants judges that, and this package makes a verdict of the findings.
//
// A run whose violations CPU starvation explains is neither failed nor passed: it is inconclusive (starvation.go has
// the rule).
//
// harness/engine judges a scenario's own expectations; this package only counts them. Files and JUnit are in
// harness/report.
package check

import (
	"github.com/kmsharness/kmsharness/harness/check/facts"
	"github.com/kmsharness/kmsharness/harness/check/invariants"
)

// Facts are what an Invariant judges: a caller may have invariants of its own.
type (
	Facts     = facts.Facts
	Invariant = invariants.Invariant
	Finding   = invariants.Finding
	Violation = invariants.Violation
	Measure   = invariants.Measure
	Latency   = invariants.Latency
)

const (
	NoneTimed = invariants.NoneTimed
	SomeTimed = invariants.SomeTimed

	NoExitID   = invariants.NoExitID
	AcceptedID = invariants.AcceptedID
)

// Invariants are all invariants, in the order in which they are shown.
func Invariants() []Invariant { return invariants.All() }

// Code names what was violated: the invariant, and the rule if it has one.
func Code(id, rule string) string { return invariants.Code(id, rule) }
