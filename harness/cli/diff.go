package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/report/diverge"
)

func newDiffCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "diff HISTORY HISTORY",
		Short: "Show where two runs of a scenario part",
		Long: `Compare two histories. They are aligned by what was said (by each plugin, rollup, process …), not by the clock: two runs that
differ in times only are the same. Otherwise the first divergence is shown: the last thing that both have, then both sides. Times
count from the beginning of the healthy control before the steps.
Exit codes: 0 the same, 1 different, 2 a history that cannot be read.`,
		Example: `  kmsharness diff /tmp/good/plugin-hangs/history.jsonl /tmp/bad/plugin-hangs/history.jsonl`,
		Args:    cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			var sides [2][]history.Event
			for i, path := range args {
				var err error
				if sides[i], err = history.ReadFile(path); err != nil {
					return fmt.Errorf("diff: %w", err)
				}
			}
			result := diverge.Compare(sides[0], sides[1])
			if err := result.Print(cmd.OutOrStdout(), [2]string{args[0], args[1]}, sides); err != nil {
				return err
			}
			if result.Verdict == diverge.Different {
				return failed()
			}
			return nil
		},
	}
}
