package cli

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/kmsharness/kmsharness/conformance"
	conform "github.com/kmsharness/kmsharness/conformance/command"
	"github.com/kmsharness/kmsharness/conformance/health"
	"github.com/kmsharness/kmsharness/harness/backend/choose"
	"github.com/kmsharness/kmsharness/harness/outdir"
	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/harness/undertest"
	"github.com/kmsharness/kmsharness/internal/choice"
	"github.com/kmsharness/kmsharness/internal/program"
	"github.com/kmsharness/kmsharness/scenarios"
)

func newConformCommand() *cobra.Command {
	cmd := conform.NewConform("kmsharness", rules)
	cmd.AddCommand(
		newHealthCommand(health.Reporter, `Run scenarios of the catalogue with a reporter of yours on a control plane with the real CRDs, and report which rules of the contract it keeps.
The journals of the plugins and the audit logs of the API servers are what it is judged by. House rules, which no source demands, fail nothing
without --strict.`, `  kmsharness conform reporter --system my-reporter.yaml
  kmsharness conform reporter --contract healthreports --focus 'TYPED|ACCEPTED' --system mine.yaml`),
		newHealthCommand(health.Aggregator, `Run scenarios of the catalogue with an aggregator of yours on a control plane with the real CRDs, and report which rules of the contract it keeps.
House rules, such as the reasons of the rollups, fail nothing without --strict.`,
			`  kmsharness conform aggregator --aggregator-command 'my-aggregator --kubeconfig {kubeconfig}'`),
		newHealthCommand(health.Operator, `Run scenarios of the catalogue with an encryption operator of yours on a control plane with the real CRDs, and report which rules it keeps.
Checks of what only this project's operator promises are not supported, each with its reason.`,
			`  kmsharness conform operator --operator-patience 4 --operator-command 'my-operator {kubeconfig}'
  kmsharness conform operator --backend sim --focus 'HO-PREFLIGHT'`),
	)
	return cmd
}

// rules are all checks of each suite, by its name.
func rules() (conform.Suites, error) {
	suites, err := health.Suites()
	if err != nil {
		return nil, err
	}
	all := conform.Suites{conform.Plugin: conform.PluginRules()}
	for _, s := range suites {
		all[s.Name] = s.Rules()
	}
	return all, nil
}

// healthFlags are the flags of the commands that certify reporters, aggregators and operators.
type healthFlags struct {
	conform.Flags
	subject  string       // the name of the suite
	suite    health.Suite // loaded by run
	backend  string
	contract string
	procs    int
	sut      choose.Options
}

// newHealthCommand certifies the program of a role, which is also the name of the suite.
func newHealthCommand(role, long, example string) *cobra.Command {
	f := healthFlags{subject: role, contract: scenario.ContractConditions}
	cmd := &cobra.Command{
		Use:     role,
		Short:   "Certify " + map[bool]string{false: "an ", true: "a "}[role == health.Reporter] + role + " by scenarios of the catalogue",
		Long:    long + "\nExit codes: 0 conformant, 1 not conformant, 2 could not run, inconclusive or partial.",
		Example: example,
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	f.Register(cmd, role)
	flags := cmd.Flags()
	choice.Add(cmd, &f.backend, "backend", "", "auto", choose.Expected(), append(choose.Names(), "auto")...)
	flags.IntVar(&f.procs, "procs", 0, "scenarios side by side, 1 to 16 (default: 3 on local, else 2)")
	flags.BoolVar(&f.sut.Strict, "strict", false, strictUsage)
	if role != health.Operator {
		choice.Add(cmd, &f.contract, "contract", "", scenario.ContractConditions, "wire form of the reports: conditions, healthreports or both", forms()...)
	}
	return cmd
}

// run prints the report also of a subject that does not conform: its rules are what the user has to look at. What is undecided fails only where no
// rule has failed, because a failure says more.
func (f *healthFlags) run(cmd *cobra.Command) (err error) {
	if f.suite, err = health.Load(f.subject); err != nil {
		return err
	}
	if f.List {
		return conform.PrintChecks(cmd.OutOrStdout(), f.Output, f.suite.Rules())
	}
	o, err := f.options(cmd)
	if err != nil {
		return err
	}
	unlock, err := outdir.Prepare(cmd.CommandPath(), f.Out)
	if err != nil {
		return err
	}
	defer unlock()
	out := program.Progress(cmd, f.Output)
	if err := ensurePrograms(cmd.Context(), out, f.backend); err != nil {
		return err
	}
	sweep := choose.Watch(cmd.Context(), f.backend, f.sut)
	c, err := f.rounds(cmd.Context(), o)
	if err := cmp.Or(err, closeBackend(cmd.Context(), o.Backend), sweepAfter(cmd.Context(), sweep, o.Progress)); err != nil {
		return err
	}
	err = f.Conclude(cmd, c.Report, f.product(), "kmsharness "+f.subject)
	if !f.Output.Structured() {
		fmt.Fprintln(cmd.OutOrStdout())
		if err := f.Output.PrintTable(cmd.OutOrStdout(), nil, health.Table(c.Report)); err != nil {
			return err
		}
	}
	for _, reason := range c.Undecided {
		fmt.Fprintln(out, "not judged:", reason)
	}
	if len(c.Undecided) > 0 && len(c.Report.With(conformance.Failed)) == 0 {
		return fmt.Errorf("%d scenarios gave neither a pass nor a failure: run again on a quieter machine, or see the reasons above", len(c.Undecided))
	}
	return err
}

// options checks the flags and prepares the run. Nothing is started.
func (f *healthFlags) options(cmd *cobra.Command) (o health.Options, err error) {
	s, err := f.Selection()
	if err != nil {
		return o, err
	}
	if f.Out == "" {
		return o, fmt.Errorf("--out: expected a folder, for the history and the verdict of each scenario")
	}
	if f.backend, _, err = choose.Name(f.backend); err != nil {
		return o, err
	}
	f.procs = cmp.Or(f.procs, choose.Processes(f.backend))
	if f.procs < 1 || f.procs > 16 {
		return o, fmt.Errorf("--procs %d: expected 1 to 16", f.procs)
	}
	all, err := scenarios.Load()
	if err == nil {
		all, err = inForm(all, &f.sut, f.System, f.contract)
	}
	if err != nil {
		return o, err
	}
	f.sut.Idle = f.procs
	b, err := choose.New(f.backend, f.sut)
	if err != nil {
		return o, f.System.Explain(err)
	}
	progress := program.Progress(cmd, f.Output)
	o = health.Options{
		Backend: b, Subject: f.sut, Catalogue: scenarios.Alike(all, func(s *scenario.Scenario) string { return choose.Plane(f.backend, s) }), Out: f.Out, Seed: int64(f.Seed), Parallel: f.procs,
		Selection: s, Flags: program.ShellWords(cmd.Flags(), "backend", "contract", "focus", "junit", "out", "procs", "profile", "repeat", "seed", "skip"), Progress: program.Lines(progress),
	}
	if verbose(cmd) {
		o.Steps = func(scenario, step string) { fmt.Fprintf(progress, "%-42s %s\n", scenario, step) }
	}
	return o, nil
}

// rounds runs the suite as often as asked for. A check that fails once has failed.
func (f *healthFlags) rounds(ctx context.Context, o health.Options) (all health.Conclusion, err error) {
	out := o.Out
	for n := range f.Repeat {
		if f.Repeat > 1 {
			o.Progress(fmt.Sprintf("== round %d of %d", n+1, f.Repeat))
			o.Out = filepath.Join(out, fmt.Sprintf("round-%d", n+1))
		}
		c, err := health.Run(ctx, f.suite, o)
		if err != nil {
			return all, err
		}
		if all.Report == nil {
			all.Report = c.Report
		} else {
			all.Report.Merge(c.Report)
		}
		all.Undecided = append(all.Undecided, c.Undecided...)
	}
	return all, nil
}

// product is the subject as the report names it.
func (f *healthFlags) product() undertest.Product {
	p, command := f.sut.Reporter.Product, f.sut.Reporter.Command
	switch f.subject {
	case health.Aggregator:
		p, command = f.sut.Aggregator.Product, f.sut.Aggregator.Command
	case health.Operator:
		p, command = f.sut.Operator.Product, f.sut.Operator.Command
	}
	p.Name = cmp.Or(p.Name, undertest.NameOf(command))
	return p
}
