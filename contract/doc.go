// Package contract holds what reporter, aggregator and checker must agree on: the names, the two wire forms of a
// health report, the limits, the freshness arithmetic and the bounds that a user may rely on.
//
// It is values and functions of values only: no I/O, no clock of its own, no import from this repository. What a
// component *decides* from these values (what to probe, what a rollup says) lives with that component, so that the
// checker can disagree with it.
//
// Section names in doc comments refer to docs/contract.md.
package contract
