// Package check judges a history by every invariant of the contract.
//
// It is a pure function of the events: Run(events) gives the same verdict for the same history, live or from a file.
// It derives what should have happened by itself (what a plugin answered from its journal, what a rollup must say from
// the reports that were visible) and shares with the rest only wire types, limits, names and reasons, so that a wrong
// rule in the reporter or the aggregator is not repeated here.
//
// Where the truth is unknown (between two calls, while no aggregator can run) nothing is judged; what was judged is
// counted, so that an empty judgement shows.
//
// A violation that CPU starvation beyond the tolerance explains is neither a failure nor a pass: the run is inconclusive (starvation.go has the
// rule). The history is then judged a second time with longer bounds, and what is violated both times stands.
//
// What does not live here: a scenario's own expectations (harness/engine judges them, this package only counts them)
// and files or JUnit (harness/report).
package check
