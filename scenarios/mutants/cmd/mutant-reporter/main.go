// Command mutant-reporter is kms-health-reporter with one mistake, chosen by --mutation. All other flags are those of
// kms-health-reporter.
package main

import (
	"context"
	"errors"
	"io"
	"maps"
	"slices"

	"github.com/kmsharness/kmsharness/internal/entry"
	"github.com/kmsharness/kmsharness/internal/host"
	"github.com/kmsharness/kmsharness/reporter"
	"github.com/kmsharness/kmsharness/reporter/options"
	"github.com/kmsharness/kmsharness/scenarios/mutants/mutation"
)

// mutations are the mistakes by name, each made for the flags of one reporter.
func mutations() map[string]func(options.Options) (reporter.Change, error) {
	return map[string]func(options.Options) (reporter.Change, error){
		"catches-up":                catchUp,
		"ends-at-once":              endAtOnce,
		"write-on-change":           onlyChanges,
		"rejected-apply":            sendWhatItGot,
		"no-rpc-deadline":           withoutDeadline,
		"plugin-never-redialled":    dialPluginsOnce,
		"apiserver-never-redialled": connecting(dialServerOnce),
		"token-read-by-the-minute":  connecting(readTokenByTheMinute),
	}
}

func main() { entry.Run(run) }

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	known := mutations()
	name, args, err := mutation.Cut(args, slices.Sorted(maps.Keys(known))...)
	if err != nil {
		return entry.Exit(stderr, "mutant-reporter", entry.ExitUsage, err)
	}
	o, errs := options.Parse(args, stdout)
	if len(errs) > 0 {
		return entry.Exit(stderr, "mutant-reporter", entry.ExitUsage, errors.Join(errs...))
	}
	change, err := known[name](o)
	if err != nil {
		return entry.Exit(stderr, "mutant-reporter", entry.ExitUsage, err)
	}
	return entry.Exit(stderr, "mutant-reporter", entry.ExitFailed, reporter.Run(ctx, host.Host{}, o, reporter.NewLogger(stderr, o.LogFormat, o.Verbosity), change))
}
