package sim

import (
	aggregating "github.com/kmsharness/kmsharness/aggregator/core"
	reporting "github.com/kmsharness/kmsharness/reporter/core"
)

// Cores are the decisions of the system under test.
type Cores struct {
	// Step is a reporter's.
	Step func(reporting.Config, reporting.State, reporting.Event) (reporting.State, reporting.Action)
	// Decide is the aggregator's.
	Decide func(aggregating.Input, aggregating.Memory) aggregating.Decision

	again bool // Decide is the project's own, which a Stepper may repeat
}

func (c Cores) withDefaults() Cores {
	if c.Step == nil {
		c.Step = reporting.Step
	}
	c.again = c.Decide == nil
	if c.Decide == nil {
		c.Decide = aggregating.Step
	}
	return c
}
