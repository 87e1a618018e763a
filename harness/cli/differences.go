package cli

import (
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/kmsharness/kmsharness/harness/report"
)

func newDifferencesCommand() *cobra.Command {
	hints := false
	cmd := &cobra.Command{
		Use:   "differences OUT_A OUT_B",
		Short: "Compare the verdicts of two runs, for example of the same catalogue on local and on kind",
		Long: `Read the results below two output folders and list the scenarios whose result differs, and the invariants that one
run violates and the other does not. Exit codes: 0 no difference, 1 differences, 2 a folder that is not the output of a run.`,
		Example: `  kmsharness e2e --backend local --out /tmp/local
  kmsharness e2e --backend kind --out /tmp/kind
  kmsharness differences /tmp/local /tmp/kind --hints`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			var runs [2]map[string]report.Outcome
			for i, out := range args {
				var err error
				if runs[i], err = report.Outcomes(out); err != nil {
					return fmt.Errorf("differences: %w", err)
				}
			}
			all := report.Compare(runs[0], runs[1], hints)
			count, err := report.WriteDifferences(cmd.OutOrStdout(), filepath.Clean(args[0]), filepath.Clean(args[1]), report.CountScenarios(runs[0], runs[1]), all)
			if err == nil && count > 0 {
				err = failed()
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&hints, "hints", false, "also show invariants that one run passed and the other had nothing to judge by")
	return cmd
}
