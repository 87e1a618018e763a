package sim

import (
	"time"

	aggregating "github.com/kmsharness/kmsharness/aggregator/core"
	operating "github.com/kmsharness/kmsharness/operator/core"
	"github.com/kmsharness/kmsharness/operator/revision"
	reporting "github.com/kmsharness/kmsharness/reporter/core"
)

// Cores are the decisions of the system under test.
type Cores struct {
	// Step is a reporter's.
	Step func(reporting.Config, reporting.State, reporting.Event) (reporting.State, reporting.Action)
	// Decide is the aggregator's; nil for the project's own.
	Decide func(aggregating.Input, aggregating.Memory) aggregating.Decision

	// Operate is the API server operator's, in scenarios that have one.
	Operate func(operating.Observed, operating.Options, time.Time) operating.Plan
	// Serve is what the pod of an API server begins with that is new, and was not rolled back.
	Serve func(o operating.Observed, back int) (revision.Config, revision.PluginConfig)
}

func (c Cores) withDefaults() Cores {
	if c.Step == nil {
		c.Step = reporting.Step
	}
	if c.Operate == nil {
		c.Operate = operating.Decide
	}
	if c.Serve == nil {
		c.Serve = operating.Serve
	}
	return c
}
