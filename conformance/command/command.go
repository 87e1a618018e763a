// Package command has the commands that certify a plugin and show reports, of the programs kmsharness and kms-conformance. It imports no client of
// Kubernetes: kms-conformance is to be small.
package command

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kmsharness/kmsharness/conformance"
	"github.com/kmsharness/kmsharness/conformance/plugin"
	"github.com/kmsharness/kmsharness/internal/printer"
	"github.com/kmsharness/kmsharness/internal/program"
)

const name = "kms-conformance"

// Main is the program kms-conformance. It returns the exit code.
func Main(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	root := &cobra.Command{
		Use:   name,
		Short: "Certify KMS v2 plugins, without a cluster",
		Long:  "The commands of kmsharness for authors of KMS v2 plugins. Exit codes: 0 passed, 1 failed, 2 could not run, inconclusive or interrupted.",
	}
	root.PersistentFlags().BoolP("quiet", "q", false, "print results only, and no progress")
	root.AddCommand(NewConform(name, func() (Suites, error) { return Suites{Plugin: PluginRules()}, nil }), NewPreflight(name))
	return program.Exit(stderr, name, program.Execute(ctx, root, args, printer.WithColours(stdout), stderr))
}

// Plugin is the name of the suite for plugins.
const Plugin = "plugin"

// PluginRules are all checks of the suite for plugins.
func PluginRules() []conformance.Check { return plugin.Rules(plugin.Catalogue()) }

// Suites are all checks of each suite that a program knows, by its name.
type Suites map[string][]conformance.Check

// NewConform is the group conform of a program that has some suites.
func NewConform(program string, suites func() (Suites, error)) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "conform",
		Short: "Certify programs of others, and show reports",
		Long: `Run a suite of checks and write a report that can be published and compared. Each check has a stable id, a rule and the source of the rule.
Exit codes: 0 conformant, 1 not conformant, 2 could not run, inconclusive, or partial: checks were left out by --focus.`,
	}
	cmd.AddCommand(newPlugin(program), newCompare(program, suites), newRender(program, suites))
	return cmd
}

// PrintChecks prints the checks of a suite.
func PrintChecks(w io.Writer, output *printer.Output, checks []conformance.Check) error {
	table := printer.Table{Columns: []string{"CHECK", "PROFILE", "RULE", "NEEDS", "SOURCE"}, Narrow: 3}
	for _, c := range checks {
		var needs []string
		for _, n := range c.Needs {
			needs = append(needs, string(n))
		}
		table.Rows = append(table.Rows, []string{c.ID, string(c.Profile), c.Rule, strings.Join(needs, ","), c.Source})
	}
	err := output.PrintTable(w, checks, table)
	if err == nil && !output.Structured() {
		_, err = fmt.Fprintf(w, "%d checks\n", len(checks))
	}
	return err
}
