package mutants

import (
	"context"
	"io"
	"slices"
	"sync"

	"github.com/kmsharness/kmsharness/aggregator/command"
	"github.com/kmsharness/kmsharness/aggregator/controller"
	"github.com/kmsharness/kmsharness/aggregator/core"
	"github.com/kmsharness/kmsharness/harness/cluster/virtual"
	"github.com/kmsharness/kmsharness/internal/host"
)

// Aggregators of the virtual control plane: kms-health-aggregator with one thing changed.

const aggregatorProgram = "kms-health-aggregator"

// startingAggregator is an aggregator that is about to run.
type startingAggregator struct {
	starting[command.Configure]
	ctx     context.Context // until its end
	besides sync.WaitGroup  // what runs beside it
}

// aggregatesBy is aggregators that are changed before they run, at each start anew.
func aggregatesBy(change func(*startingAggregator)) func() virtual.Options {
	return func() virtual.Options {
		return replacing(aggregatorProgram, func(ctx context.Context, h host.Host, args []string, _, stderr io.Writer) int {
			ctx, end := context.WithCancel(ctx)
			a := &startingAggregator{starting: starting[command.Configure]{Host: h, args: args}, ctx: ctx}
			defer a.besides.Wait()
			defer end()
			change(a)
			return command.Main(ctx, a.Host, a.args, stderr, a.configure...)
		})
	}
}

// configuredAggregators is aggregators with another configuration.
func configuredAggregators(change command.Configure) func() virtual.Options {
	return aggregatesBy(func(a *startingAggregator) { a.configure = append(a.configure, change) })
}

type decide = func(core.Input, core.Memory) core.Decision

// deciding is an aggregator with a core of its own, whose replicas share what it remembers.
func deciding(make func() decide) func() virtual.Options {
	return func() virtual.Options {
		var mu sync.Mutex
		d := make()
		return configuredAggregators(func(c *controller.Config) {
			c.Decide = func(in core.Input, m core.Memory) core.Decision {
				mu.Lock()
				defer mu.Unlock()
				return d(in, m)
			}
		})()
	}
}

// forgetful is an aggregator whose core remembers nothing of its own.
func forgetful(d decide) func() virtual.Options { return deciding(func() decide { return d }) }

// overlooking is an aggregator that takes what it sees for something else.
func overlooking(change func(in *core.Input)) func() virtual.Options {
	return forgetful(func(in core.Input, m core.Memory) core.Decision {
		in = deep(in)
		change(&in)
		return core.Step(in, m)
	})
}

// deep is an input of which everything may be changed.
func deep(in core.Input) core.Input {
	reports := map[string]core.Report{}
	for node, r := range in.Observed.Reports {
		r.Entries, r.Problems = slices.Clone(r.Entries), slices.Clone(r.Problems)
		reports[node] = r
	}
	in.Observed.Reports = reports
	return in
}

// misdeciding is an aggregator that does something else than its core decided.
func misdeciding(change func(in core.Input, d *core.Decision)) func() virtual.Options {
	return forgetful(func(in core.Input, m core.Memory) core.Decision {
		d := core.Step(in, m)
		change(in, &d)
		return d
	})
}

// saying is an aggregator that says something else in its rollups.
func saying(change func(in core.Input, c *core.Condition)) func() virtual.Options {
	return misdeciding(func(in core.Input, d *core.Decision) {
		if len(d.Rollups) == 0 {
			return
		}
		rollups := slices.Clone(d.Rollups)
		for i := range rollups {
			change(in, &rollups[i])
		}
		*d = d.Say(in, rollups)
	})
}
