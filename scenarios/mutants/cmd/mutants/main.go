// Command mutants runs the subjects that are wrong on purpose, and prints what caught each. It fails for one that nothing caught.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/pflag"

	"github.com/kmsharness/kmsharness/harness/cluster/virtual"
	"github.com/kmsharness/kmsharness/harness/cluster/virtual/bubble"
	"github.com/kmsharness/kmsharness/harness/coverage"
	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/internal/entry"
	"github.com/kmsharness/kmsharness/scenarios"
	"github.com/kmsharness/kmsharness/scenarios/mutants"
	"github.com/kmsharness/kmsharness/scenarios/mutants/kmsplugin"
	"github.com/kmsharness/kmsharness/scenarios/mutants/trial"
)

const (
	exitSurvivor = 1
	exitUsage    = 2
)

func main() { bubble.Main(func() { entry.Run(run) }) }

// flags of the command.
type flags struct {
	backend, contract, name, programs, out string
	verbose, list                          bool
}

func parse(args []string, stderr io.Writer) (f flags, err error) {
	set := pflag.NewFlagSet("mutants", pflag.ContinueOnError)
	set.SetOutput(stderr)
	set.StringVar(&f.backend, "backend", "auto", "which mutants: sim, plugin (of the conformance suite for KMS v2 plugins), local, or auto for all, in this order")
	set.StringVar(&f.contract, "contract", scenario.ContractConditions, "wire form of the reports: conditions, healthreports or both; of a mistake that can be made in one form only it is that one")
	set.StringVar(&f.name, "name", "", "only the mutant of this name")
	set.BoolVar(&f.verbose, "verbose", false, "print the verdict of each")
	set.StringVar(&f.programs, "programs", "bin", "directory with the programs, for mutants that run as processes")
	set.StringVar(&f.out, "out", "_mutants", "where histories and verdicts go")
	set.BoolVar(&f.list, "list", false, "run nothing, and list the mutants: the mistake of each, and what must catch it")
	return f, set.Parse(args)
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	f, err := parse(args, stderr)
	if errors.Is(err, pflag.ErrHelp) {
		return 0
	}
	if err == nil && f.list {
		return usage(stderr, f.printList(stdout))
	}
	var plugins []kmsplugin.Mutant
	var outcomes []trial.Outcome
	if err == nil {
		plugins, err = f.plugins()
	}
	if err == nil && f.backend != pluginBackend && !f.onlyPlugin(plugins) {
		outcomes, err = f.try(ctx, stderr)
	}
	if err != nil {
		return usage(stderr, err)
	}
	code := 0
	if len(outcomes) > 0 {
		code = f.report(stdout, stderr, outcomes)
	}
	if len(plugins) > 0 {
		code = max(code, f.judgePlugins(ctx, plugins, stdout, stderr))
	}
	if ctx.Err() != nil {
		fmt.Fprintln(stderr, "mutants: interrupted, not all were tried")
		return exitSurvivor
	}
	return code
}

// usage tells of a mistake.
func usage(stderr io.Writer, err error) int {
	if err == nil {
		return 0
	}
	fmt.Fprintln(stderr, "mutants:", err)
	return exitUsage
}

// printList prints the chosen mutants, each in one line.
func (f flags) printList(w io.Writer) error {
	plugins, err := f.plugins()
	if err != nil {
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "MUTANT\tOF\tBACKEND\tSCENARIO\tCAUGHT BY\tMISTAKE")
	if f.backend != pluginBackend && !f.onlyPlugin(plugins) {
		chosen, err := choose(f.backend, f.name)
		if err != nil {
			return err
		}
		for _, m := range chosen {
			fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", m.Name, m.Family, m.Backend(), m.Scenario, strings.Join(m.Caught, " "), m.Mistake)
		}
	}
	for _, m := range plugins {
		fmt.Fprintf(t, "%s\tplugin\t%s\t-\t%s\t%s\n", m.Name, pluginBackend, m.Caught, m.Mistake)
	}
	return t.Flush()
}

// choose is the mutants that were asked for.
func choose(backend, name string) ([]mutants.Mutant, error) {
	if !slices.Contains([]string{"auto", virtual.Name, "local"}, backend) {
		return nil, fmt.Errorf("--backend %q: expected auto, sim, plugin or local", backend)
	}
	var chosen []mutants.Mutant
	for _, m := range mutants.All() {
		wanted := backend == "auto" || backend == m.Backend()
		if wanted && (name == "" || name == m.Name) {
			chosen = append(chosen, m)
		}
	}
	if len(chosen) == 0 {
		return nil, fmt.Errorf("there is no mutant %q for --backend %s: --list lists them", name, backend)
	}
	return chosen, nil
}

// try runs one after another, and says on what takes long.
func (f flags) try(ctx context.Context, progress io.Writer) ([]trial.Outcome, error) {
	chosen, err := choose(f.backend, f.name)
	if err != nil {
		return nil, err
	}
	all, err := scenarios.Load()
	if err != nil {
		return nil, err
	}
	var o trial.Options
	if o.Programs, err = filepath.Abs(f.programs); err != nil {
		return nil, err
	}
	if f.verbose {
		o.Progress = func(line string) { fmt.Fprintln(progress, line) }
	}
	forms := []string{f.contract}
	if f.contract == scenario.BothContracts {
		forms = scenario.Contracts()
	}
	var outcomes []trial.Outcome
	for n, form := range forms {
		for _, m := range chosen {
			if ctx.Err() != nil {
				return outcomes, nil
			}
			// A mistake that can be made in one wire form only is tried once.
			if m.Contract != "" && n > 0 {
				continue
			}
			form := cmp.Or(m.Contract, form)
			if o.Scenarios, err = scenario.InForms(all, form); err != nil {
				return nil, fmt.Errorf("--contract %w", err)
			}
			o.Out = filepath.Join(f.out, form)
			if on := m.Backend(); on == "local" {
				fmt.Fprintf(progress, "%s on %s (%s) …\n", m.Name, on, form)
			}
			outcomes = append(outcomes, trial.Run(ctx, m, o))
		}
	}
	return outcomes, nil
}

func (f flags) report(stdout, stderr io.Writer, outcomes []trial.Outcome) int {
	if f.verbose {
		for _, o := range outcomes {
			fmt.Fprintf(stdout, "%s: %s\n%s\n", o.Name, o.Mistake, o.Result.Text())
		}
	}
	all, err := trial.Table(stdout, outcomes)
	if err == nil && f.name == "" && f.backend == "auto" { // all were tried
		var statements []coverage.Statement
		if statements, err = scenarios.Statements(); err == nil {
			err = trial.Statements(stdout, statements, outcomes)
		}
	}
	switch {
	case err != nil:
		return usage(stderr, err)
	case !all:
		return exitSurvivor
	}
	return 0
}
