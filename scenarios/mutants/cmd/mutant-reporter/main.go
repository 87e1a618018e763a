// Command mutant-reporter is kms-health-reporter with one mistake, chosen by --mutation. All other flags are those of
// kms-health-reporter.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/kmsharness/kmsharness/reporter"
	"github.com/kmsharness/kmsharness/reporter/options"
	"github.com/kmsharness/kmsharness/scenarios/mutants/mutation"
)

// The mutations.
const (
	writeOnChange = "write-on-change"
	rejectedApply = "rejected-apply"
)

func main() { os.Exit(run(os.Args[1:])) }

func run(args []string) int {
	name, args, err := mutation.Cut(args, writeOnChange, rejectedApply)
	if err != nil {
		return refuse(err)
	}
	o, errs := options.Parse(args, os.Stdout)
	if len(errs) > 0 {
		return refuse(errs...)
	}
	mutate := reporter.Decorator(onlyChanges)
	if name == rejectedApply {
		if mutate, err = sendWhatItGot(o); err != nil {
			return refuse(err)
		}
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := reporter.Run(ctx, o, reporter.NewLogger(os.Stderr, o.LogFormat, o.Verbosity), mutate); err != nil {
		fmt.Fprintln(os.Stderr, "mutant-reporter:", err)
		return 1
	}
	return 0
}

func refuse(errs ...error) int {
	for _, err := range errs {
		fmt.Fprintln(os.Stderr, "mutant-reporter:", err)
	}
	return 2
}
