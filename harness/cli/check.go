package cli

import (
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/kmsharness/kmsharness/harness/check"
	"github.com/kmsharness/kmsharness/harness/history"
)

func newCheckCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "check HISTORY...",
		Short: "Judge saved histories again, offline",
		Long: `Read histories (OUT/<scenario>/history.jsonl) and judge each by every invariant, as the run did.
Nothing but the file is looked at: a history from another machine is judged just the same.`,
		Example: `  kmsharness check _artifacts/plugin-hangs/history.jsonl
  kmsharness check _artifacts/*/history.jsonl`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			bad := 0
			for _, path := range args {
				events, err := history.ReadFile(path)
				if err != nil {
					return err
				}
				verdict := check.Run(events)
				fmt.Fprintf(cmd.OutOrStdout(), "== %s\n", filepath.ToSlash(path))
				check.Print(cmd.OutOrStdout(), verdict)
				if !verdict.OK {
					bad++
				}
			}
			fmt.Fprintf(cmd.OutOrStdout(), "check: %d passed, %d failed\n", len(args)-bad, bad)
			if bad > 0 {
				return failed()
			}
			return nil
		},
	}
}
