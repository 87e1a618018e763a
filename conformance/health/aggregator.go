package health

import (
	"slices"

	"github.com/kmsharness/kmsharness/harness/check"
	"github.com/kmsharness/kmsharness/harness/history"
)

// Aggregator certifies an aggregator.
func Aggregator() Suite {
	return Suite{
		Name:       "aggregator",
		Checks:     slices.Concat([]Check{runs("HA", "An aggregator")}, aggregatorRollup(), aggregatorFreshness(), aggregatorCleanup(), aggregatorWrites(), aggregatorLife(), aggregatorEndToEnd()),
		Invariants: []check.Invariant{endsInTime(history.RoleAggregator)},
	}
}

// Operator judges this project's operator: no other can take its place yet.
func Operator() Suite {
	return Suite{Name: "operator", Checks: operatorRules(), FirstFailureEnds: true}
}
