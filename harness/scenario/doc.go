// Package scenario is the model of one behaviour to be tested: a topology, a timeline of actions and expectations.
// It is data, written in YAML or in Go; it never names a backend.
//
// What lives here: the types, strict parsing with positions, validation, durations in multiples of the interval, and
// the compilation of expectations. What does not: running it (harness/engine), judging it (harness/check), knowing
// what an environment can do (harness/backend).
package scenario
