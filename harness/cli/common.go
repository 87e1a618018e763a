package cli

import (
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kmsharness/kmsharness/harness/backend/choose"
	"github.com/kmsharness/kmsharness/harness/engine"
	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/harness/undertest"
	"github.com/kmsharness/kmsharness/internal/choice"
	"github.com/kmsharness/kmsharness/internal/printer"
	"github.com/kmsharness/kmsharness/internal/program"
	"github.com/kmsharness/kmsharness/scenarios"
)

// common are the flags of every command that runs scenarios.
type common struct {
	backend string
	out     string
	seed    int64
	// contract is the wire form of scenarios that are not about one: see scenario.InForms.
	contract  string
	publish   string // a value of scenario.Published
	system    *undertest.Flags
	sut       choose.Options
	keepGoing bool
	// artifacts is a text of engine.Artifacts.
	artifacts string
	output    *printer.Output
	// passed are the flags that the suite of e2e has, too.
	passed *pflag.FlagSet
}

func (c *common) register(cmd *cobra.Command) {
	f := cmd.Flags()
	choice.Add(cmd, &c.backend, "backend", "", "auto", choose.Expected(), append(choose.Names(), "auto")...)
	f.StringVar(&c.out, "out", "_artifacts", "folder for verdicts, histories and logs")
	c.system = undertest.AddFlags(cmd)
	c.output = printer.AddFlag(cmd)
	choice.Add(cmd, &c.contract, "contract", "", scenario.ContractConditions, "wire form of the reports, for scenarios that are not about one: conditions, healthreports or both", forms()...)
	choice.Add(cmd, &c.publish, "publish", "", scenario.PublishApply, "route of reports: ssa (applied to the API server) or stream (to the aggregator), for scenarios that name none", scenario.PublishApply, scenario.PublishStream)
	choice.Add(cmd, &c.artifacts, "artifacts", "", string(engine.ArtifactsOnFailure), "when objects and manifests are collected: on-failure, always or never", "on-failure", "always", "never")
	f.Int64Var(&c.seed, "seed", 1, "seed of what a scenario leaves to chance")
	f.BoolVar(&c.sut.Strict, "strict", false, strictUsage)
	f.BoolVar(&c.keepGoing, "keep-going", false, "after a failed expectation go on with the steps, and judge each later one on its own")
	c.passed = pflag.NewFlagSet("passed", pflag.ContinueOnError)
	for _, name := range []string{"contract", "publish", "artifacts", "seed", "strict", "keep-going"} {
		c.passed.AddFlag(f.Lookup(name))
	}
}

func forms() []string { return append(scenario.Contracts(), scenario.BothContracts) }

// completeScenarios completes arguments that are files, folders or names of scenarios.
func completeScenarios(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	all, err := scenarios.Load()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var names []string
	for _, s := range all {
		names = append(names, cobra.CompletionWithDesc(s.Name, s.Title))
	}
	return names, cobra.ShellCompDirectiveDefault
}

const strictUsage = "house rules, which no source demands, fail also programs that are not this project's"

// judgedAlike are the flags that give another run the same system under test, and judge it by the same rules.
func (c *common) judgedAlike() []string {
	return append(program.ShellWords(c.system.FlagSet), program.ShellWords(c.passed, "contract", "publish", "artifacts", "seed")...)
}

// choose makes the backend of a name for the system under test. It starts nothing, and finds mistakes in the description.
func (c *common) choose(name string) (choose.Backend, error) {
	b, err := choose.New(name, c.sut)
	return b, c.system.Explain(err)
}

// inForms reads the description of the system under test, and gives scenarios and system the wire form and the route that were asked for.
func (c *common) inForms(all []*scenario.Scenario) (_ []*scenario.Scenario, err error) {
	if all, err = inForm(all, &c.sut, c.system, c.contract); err != nil {
		return nil, err
	}
	if all, err = scenario.Published(all, c.publish); err != nil {
		return nil, fmt.Errorf("--publish %v", err)
	}
	c.sut.Streaming = c.publish == scenario.PublishStream
	return all, nil
}

// inForm reads the description of the system under test, and gives scenarios and system a wire form.
func inForm(all []*scenario.Scenario, sut *choose.Options, system *undertest.Flags, contract string) (out []*scenario.Scenario, err error) {
	if sut.System, err = system.System(); err != nil {
		return nil, err
	}
	if out, err = scenario.InForms(all, contract); err == nil {
		*sut, err = sut.InForm(contract)
	}
	if err != nil {
		return nil, fmt.Errorf("--contract %v", err)
	}
	return out, nil
}

// verbose reports whether a command shows each step.
func verbose(cmd *cobra.Command) bool {
	is, err := cmd.Flags().GetBool("verbose")
	return err == nil && is
}
