// Package scenario is the model of one behaviour to test: a topology, a timeline of actions and expectations. It is
// data, written in YAML or in Go, and names no backend.
//
// It has the types, strict parsing with positions, validation, durations in multiples of the interval, and the
// compilation of expectations. Running a scenario is in harness/engine, judging it in harness/check, the abilities of
// an environment in harness/backend.
package scenario
