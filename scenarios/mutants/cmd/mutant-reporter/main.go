// Command mutant-reporter is kms-health-reporter with one mistake, chosen by --mutation. All other flags are those of
// kms-health-reporter.
package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/kmsharness/kmsharness/reporter"
	"github.com/kmsharness/kmsharness/reporter/options"
	"github.com/kmsharness/kmsharness/scenarios/mutants/mutation"
)

// mutations are the mistakes by name, each made for the flags of one reporter.
func mutations() map[string]func(options.Options) (reporter.Change, error) {
	return map[string]func(options.Options) (reporter.Change, error){
		"ends-at-once":              endAtOnce,
		"write-on-change":           onChangesOnly,
		"rejected-apply":            sendWhatItGot,
		"no-rpc-deadline":           withoutDeadline,
		"plugin-never-redialled":    dialPluginsOnce,
		"apiserver-never-redialled": dialServerOnce,
		"token-read-by-the-minute":  readTokenByTheMinute,
	}
}

// errAtOnce is the last output of a reporter that ends by itself.
var errAtOnce = errors.New("open /var/run/kmsplugin: permission denied")

// endAtOnce is a reporter that does not come to its first round.
func endAtOnce(options.Options) (reporter.Change, error) { return nil, errAtOnce }

func main() { os.Exit(run(os.Args[1:])) }

func run(args []string) int {
	known := mutations()
	name, args, err := mutation.Cut(args, slices.Sorted(maps.Keys(known))...)
	if err != nil {
		return refuse(err)
	}
	o, errs := options.Parse(args, os.Stdout)
	if len(errs) > 0 {
		return refuse(errs...)
	}
	change, err := known[name](o)
	if err != nil {
		return refuse(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	if err := reporter.Run(ctx, o, reporter.NewLogger(os.Stderr, o.LogFormat, o.Verbosity), change); err != nil {
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
