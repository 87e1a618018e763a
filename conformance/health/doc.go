// Package health certifies health reporters, aggregators and this project's operator: the rules of docs/contract.md as checks.
//
// A check is a row of reporter.yaml, aggregator.yaml or operator.yaml and runs nothing itself. It names scenarios of the catalogue that exercise its
// rule, and what of their verdicts shows whether the rule is kept: rules of harness/check, by their codes, and expectations of the scenarios. Run runs
// the scenarios of all selected checks on a backend. Judge turns what was observed into one conformance.Result for each check, and is pure.
package health
