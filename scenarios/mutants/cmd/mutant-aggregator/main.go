// Command mutant-aggregator is kms-health-aggregator with one mistake, chosen by --mutation. All other flags are those
// of kms-health-aggregator.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/kmsharness/kmsharness/aggregator/command"
	"github.com/kmsharness/kmsharness/aggregator/controller"
	"github.com/kmsharness/kmsharness/scenarios/mutants/mutation"
)

const forgetRemovedNodes = "forget-removed-nodes"

func main() { os.Exit(run(os.Args[1:])) }

func run(args []string) int {
	_, args, err := mutation.Cut(args, forgetRemovedNodes)
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutant-aggregator:", err)
		return command.ExitUsage
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return command.Main(ctx, args, os.Stderr, func(c *controller.Config) { c.Decide = neverForget() })
}
