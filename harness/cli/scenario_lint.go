package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/kmsharness/kmsharness/harness/scenario/standard"
	"github.com/kmsharness/kmsharness/internal/text"
)

func newScenarioLintCommand(x standard.Extensions) *cobra.Command {
	return &cobra.Command{
		Use:   "lint FILE|DIR|NAME...",
		Short: "Look for mistakes in scenario files, without running them",
		Long: `Every mistake of every file is told in one line: file:line:column: what, expected, did you mean. Exit code 0: there are none;
2: there are some.`,
		Example:           "  kmsharness scenario lint my-failure.yaml\n  kmsharness scenario lint scenarios/catalogue",
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: completeScenarios,
		RunE: func(cmd *cobra.Command, args []string) error {
			all, err := load(x, args)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s without mistakes\n", text.Count(len(all), "scenario"))
			return err
		},
	}
}
