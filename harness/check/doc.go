// Package check judges a history by every invariant of the contract.
//
// It is a pure function of the events: Run(events) gives the same verdict for the same history, live or from a file. It
// computes the expected observations itself (the answers of a plugin from its journal, a rollup from the visible
// reports) and shares with other packages only wire types, limits, names and reasons, so that it does not repeat a
// wrong rule of the reporter or the aggregator.
//
// Nothing is judged while the truth is unknown (between two calls, while no aggregator can run). Judgements are
// counted, so that an empty verdict is visible.
//
// A run whose violations CPU starvation explains is neither failed nor passed: it is inconclusive (starvation.go has
// the rule).
//
// harness/engine judges a scenario's own expectations; this package only counts them. Files and JUnit are in
// harness/report.
package check
