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
			bad, undecided := 0, 0
			for _, path := range args {
				events, err := history.ReadFile(path)
				if err != nil {
					return err
				}
				verdict := check.Run(events)
				fmt.Fprintf(cmd.OutOrStdout(), "== %s\n", filepath.ToSlash(path))
				check.Print(cmd.OutOrStdout(), verdict)
				switch {
				case len(verdict.Undecided) > 0:
					undecided++
				case !verdict.OK:
					bad++
				}
			}
			fmt.Fprintf(cmd.OutOrStdout(), "check: %d passed, %d failed%s\n", len(args)-bad-undecided, bad, undecidedText(undecided))
			switch {
			case bad > 0:
				return failed()
			case undecided > 0:
				return &exitError{code: ExitCouldNotRun}
			}
			return nil
		},
	}
}

// undecidedText is a further part of the last line, if there is anything to tell.
func undecidedText(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(", %d without a verdict: the machine was too busy", n)
}
