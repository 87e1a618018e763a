package engine

import (
	"cmp"
	"context"
	"time"

	"k8s.io/utils/clock"

	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/harness/scenario/view"
)

// Options of one run.
type Options struct {
	// Log is the history; the environment records to it too. Needed by Run; Execute makes its own.
	Log *history.Log
	// Runtime is time; nil is real time.
	Runtime Runtime
	// Faults says which parameters of faults are durations; nil knows only those that every fault has.
	Faults scenario.FaultChecker
	// Compiler compiles expectations; nil makes one. Runs that share one compile what they have in common once.
	Compiler *view.Compiler
	// Backend is the name for the history's heading.
	Backend string
	// Seed of what is drawn.
	Seed int64
	// Reproduce is the command that runs the scenario again, for the heading and for failures.
	Reproduce string
	// Began is when the environment began to come up; zero means now. The times in the output count from it.
	Began time.Time
	// Progress receives one line at a time about what happens; nil is silence.
	Progress func(string)
	// SourceOnly: the system under test is not this project's, and house rules that it breaks are listed and fail nothing.
	SourceOnly bool
	// BackOff is that of the reporter under test: contract.Timing.BackOff.
	BackOff int
	// Plugin is the KMS v2 plugin under test; zero: the plugins are fake.
	Plugin history.Implementation
	// Operator is the encryption operator under test; zero: it is this project's. Scenarios without an operator do not name it.
	Operator history.Implementation
	// KeepGoing lets steps go on after an expectation failed, so that one run shows all findings. What fails in the same
	// way again is marked as a repetition.
	KeepGoing bool
	// OnFailure is called once, before anything is healed, when an expectation or an action failed; nil: nobody is told.
	OnFailure func(ctx context.Context)
	// Limits are the engine's own timeouts; zero means DefaultLimits.
	Limits Limits
}

// Limits are the timeouts that no scenario names. They only bound what should not last: each is far above what was
// measured on a loaded machine with two cores.
type Limits struct {
	// Prepare bounds everything until a scenario's environment is ready: the slowest is a cluster of three nodes in containers that waits
	// for the boot of another.
	Prepare time.Duration
	// Action bounds one action. The slowest is a switch of the encryption with many objects: minutes for ten thousand.
	Action time.Duration
	// StartUp is added to the contract's bound in the control after the steps: what healing started must get going.
	StartUp time.Duration
	// Finish bounds reading every object back and draining the recorders when the run is over.
	Finish time.Duration
}

func DefaultLimits() Limits {
	return Limits{Prepare: 20 * time.Minute, Action: 15 * time.Minute, StartUp: 20 * time.Second, Finish: 5 * time.Minute}
}

// operatorOf is the operator under test of a scenario; zero: it has none.
func (o Options) operatorOf(s *scenario.Scenario) history.Implementation {
	if !s.Topology.ByOperator() {
		return history.Implementation{}
	}
	return o.Operator
}

func (o Options) withDefaults() Options {
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	if o.OnFailure == nil {
		o.OnFailure = func(context.Context) {}
	}
	if o.Runtime == nil {
		o.Runtime = RealTime(clock.RealClock{})
	}
	o.Limits = cmp.Or(o.Limits, DefaultLimits())
	if o.Began.IsZero() {
		o.Began = o.Runtime.Now()
	}
	return o
}
