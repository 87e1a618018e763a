// Command mutant-aggregator is kms-health-aggregator with one mistake, chosen by --mutation. All other flags are those
// of kms-health-aggregator.
package main

import (
	"context"
	"io"
	"maps"
	"os/signal"
	"slices"
	"syscall"

	"github.com/kmsharness/kmsharness/aggregator/command"
	"github.com/kmsharness/kmsharness/aggregator/controller"
	"github.com/kmsharness/kmsharness/internal/entry"
	"github.com/kmsharness/kmsharness/internal/host"
	"github.com/kmsharness/kmsharness/scenarios/mutants/mutation"
)

// leaseNotReleased ends when it is asked to, without a word to anybody: the lease stays its own until it runs out.
const leaseNotReleased = "lease-not-released"

func mutations() map[string]func(*controller.Config) {
	return map[string]func(*controller.Config){
		"forget-removed-nodes": func(c *controller.Config) { c.Decide = neverForget() },
		"other-reasons":        func(c *controller.Config) { c.Decide = otherReasons() },
		"watch-never-renewed":  watchOnce,
		leaseNotReleased:       func(*controller.Config) {},
	}
}

func main() { entry.Run(run) }

func run(ctx context.Context, args []string, _, stderr io.Writer) int {
	known := mutations()
	name, args, err := mutation.Cut(args, slices.Sorted(maps.Keys(known))...)
	if err != nil {
		return entry.Exit(stderr, "mutant-aggregator", command.ExitUsage, err)
	}
	if name == leaseNotReleased {
		signal.Reset(syscall.SIGTERM) // the default: the process ends at once
		return command.Main(context.Background(), host.Host{}, args, stderr, known[name])
	}
	return command.Main(ctx, host.Host{}, args, stderr, known[name])
}
