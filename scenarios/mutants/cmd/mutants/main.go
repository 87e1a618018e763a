// Command mutants runs the subjects that are wrong on purpose, and prints what caught each. It fails for one that nothing caught.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/spf13/pflag"

	"github.com/kmsharness/kmsharness/scenarios"
	"github.com/kmsharness/kmsharness/scenarios/mutants"
	"github.com/kmsharness/kmsharness/scenarios/mutants/trial"
)

const (
	exitSurvivor = 1
	exitUsage    = 2
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	flags := pflag.NewFlagSet("mutants", pflag.ContinueOnError)
	flags.SetOutput(stderr)
	backend := flags.String("backend", "auto", "which mutants: sim, local, or auto for all, the simulated ones first")
	name := flags.String("name", "", "only the mutant of this name")
	verbose := flags.Bool("verbose", false, "print the verdict of each")
	programs := flags.String("programs", "bin", "directory with the programs, for mutants that run as processes")
	out := flags.String("out", "_mutants", "where histories and verdicts go")
	if err := flags.Parse(args); err != nil {
		return exitUsage
	}
	chosen, err := choose(*backend, *name)
	if err != nil {
		fmt.Fprintln(stderr, "mutants:", err)
		return exitUsage
	}
	all, err := scenarios.Load()
	if err != nil {
		fmt.Fprintln(stderr, "mutants:", err)
		return exitUsage
	}
	dir, err := filepath.Abs(*programs)
	if err != nil {
		fmt.Fprintln(stderr, "mutants:", err)
		return exitUsage
	}
	o := trial.Options{Scenarios: all, Programs: dir, Out: *out}
	if *verbose {
		o.Progress = func(line string) { fmt.Fprintln(stderr, line) }
	}
	return report(stdout, stderr, try(ctx, chosen, o, stderr), *verbose)
}

// choose is the mutants that were asked for.
func choose(backend, name string) ([]mutants.Mutant, error) {
	if backend != "auto" && backend != "sim" && backend != "local" {
		return nil, fmt.Errorf("--backend %q: expected auto, sim or local", backend)
	}
	var chosen []mutants.Mutant
	for _, m := range mutants.All() {
		wanted := backend == "auto" || (backend == "sim") == m.Simulated()
		if wanted && (name == "" || name == m.Name) {
			chosen = append(chosen, m)
		}
	}
	if len(chosen) == 0 {
		return nil, fmt.Errorf("there is no mutant %q for --backend %s: docs/mutants.md lists them", name, backend)
	}
	return chosen, nil
}

// try runs one after another, and says on what takes long.
func try(ctx context.Context, chosen []mutants.Mutant, o trial.Options, progress io.Writer) []trial.Outcome {
	var outcomes []trial.Outcome
	for _, m := range chosen {
		if ctx.Err() != nil {
			break
		}
		if !m.Simulated() {
			fmt.Fprintf(progress, "%s on local …\n", m.Name)
		}
		outcomes = append(outcomes, trial.Run(ctx, m, o))
	}
	return outcomes
}

func report(stdout, stderr io.Writer, outcomes []trial.Outcome, verbose bool) int {
	if verbose {
		for _, o := range outcomes {
			fmt.Fprintf(stdout, "%s: %s\n%s\n", o.Name, o.Mistake, o.Result.Text())
		}
	}
	all, err := trial.Table(stdout, outcomes)
	if err != nil {
		fmt.Fprintln(stderr, "mutants:", err)
		return exitUsage
	}
	if !all {
		return exitSurvivor
	}
	return 0
}
