package cli

import (
	"slices"

	"github.com/spf13/cobra"

	"github.com/kmsharness/kmsharness/harness/coverage"
	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/harness/scenario/standard"
	"github.com/kmsharness/kmsharness/internal/choice"
	"github.com/kmsharness/kmsharness/internal/printer"
	"github.com/kmsharness/kmsharness/scenarios"
	"github.com/kmsharness/kmsharness/scenarios/mutants"
)

func newScenarioListCommand(x standard.Extensions) *cobra.Command {
	var area string
	var output *printer.Output
	var byStatement bool
	cmd := &cobra.Command{
		Use:               "list [FILE|DIR|NAME...]",
		Short:             "List scenarios: area, topology, faults, backends",
		ValidArgsFunction: completeScenarios,
		Long: `List the catalogue of this program, or the scenarios of files.

With --statements it lists the statements of the sources (scenarios/statements.yaml), and where each is judged:

  STATUS         covered: each wrong subject of the list fails by what stands beside it.
                 weak: a part of the statement has no wrong subject, or no real components.
                 outside: no harness can judge it. -o wide has the reasons.
  GATE, NIGHT    where those rules judge correct subjects, at each commit or at night only.
                 sim: real programs in virtual time, beside API servers in memory. local, kind:
                 real API servers, on kind with kubelets. plugin: conform plugin. test: Go tests.
  SCENARIOS      how many cite the statement, which alone shows nothing
  WRONG SUBJECT  and in parentheses the invariant, step, check or Go test by which it fails`,
		Example: "  kmsharness scenario list\n  kmsharness scenario list --area network -o wide\n  kmsharness scenario list --statements",
		RunE: func(cmd *cobra.Command, args []string) error {
			all, err := listed(x, args, area)
			if err != nil {
				return err
			}
			if byStatement {
				statements, err := scenarios.Statements()
				if err != nil {
					return err
				}
				covered, err := coverage.Statements(statements, all, mutants.Subjects())
				if err != nil {
					return err
				}
				return output.PrintTable(cmd.OutOrStdout(), covered, coverage.StatementTable(covered))
			}
			entries, err := coverage.Entries(all)
			if err != nil {
				return err
			}
			return output.PrintTable(cmd.OutOrStdout(), entries, coverage.Table(entries))
		},
	}
	choice.Add(cmd, &area, "area", "", "", "only those of this area", scenario.Areas()...)
	output = printer.AddFlag(cmd, printer.Wide)
	cmd.Flags().BoolVar(&byStatement, "statements", false, "list the statements of the sources, and where each is judged")
	return cmd
}

func listed(x standard.Extensions, paths []string, area string) (all []*scenario.Scenario, err error) {
	if len(paths) > 0 {
		all, err = load(x, paths)
	} else {
		all, err = scenarios.Load()
	}
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(s *scenario.Scenario) bool { return area != "" && s.Area != area }), nil
}
