package cli

import (
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/kmsharness/kmsharness/harness/check"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/scenario/standard"
	"github.com/kmsharness/kmsharness/internal/printer"
	"github.com/kmsharness/kmsharness/internal/program"
)

func newCheckCommand(x standard.Extensions) *cobra.Command {
	var output *printer.Output
	cmd := &cobra.Command{
		Use:   "check HISTORY...",
		Short: "Judge saved histories again, offline",
		Long: `Read histories (OUT/<scenario>/history.jsonl) and judge each by every invariant, as the run did.
Nothing but the file is looked at: a history from another machine is judged just the same. The name - is standard input.`,
		Example: `  kmsharness check _artifacts/plugin-hangs/history.jsonl
  kmsharness check _artifacts/*/history.jsonl`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			counts := map[check.Outcome]int{}
			words := program.Progress(cmd, output)
			var all []checkedHistory
			for _, path := range args {
				events, err := history.ReadFile(path)
				if err != nil {
					return err
				}
				verdict := check.Run(events, x.Invariants...)
				all = append(all, checkedHistory{filepath.ToSlash(path), verdict})
				fmt.Fprintf(words, "== %s\n", filepath.ToSlash(path))
				check.Print(words, verdict)
				counts[verdict.Outcome]++
			}
			bad, inconclusive := counts[check.RunFailed], counts[check.RunInconclusive]
			err := output.Print(cmd.OutOrStdout(), all, func(w io.Writer) error {
				text := fmt.Sprintf("check: %d passed, %d failed", len(args)-bad-inconclusive, bad)
				if inconclusive > 0 {
					text += fmt.Sprintf(", %d INCONCLUSIVE", inconclusive)
				}
				_, err := fmt.Fprintln(w, text)
				return err
			})
			switch {
			case err != nil:
				return err
			case bad > 0:
				return program.Failed()
			case inconclusive > 0:
				return &program.ExitError{Code: program.ExitCouldNotRun}
			}
			return nil
		},
	}
	output = printer.AddFlag(cmd)
	return cmd
}

// checkedHistory is a verdict with the file that it is about.
type checkedHistory struct {
	File string `json:"file"`
	check.Verdict
}

// listedRule is an invariant, or one of its rules.
type listedRule struct {
	ID        string `json:"id"`
	Statement string `json:"statement"`
	Source    string `json:"source,omitempty"` // of an invariant
	House     bool   `json:"house,omitempty"`  // a rule that no source demands
}

func newInvariantsCommand(x standard.Extensions) *cobra.Command {
	var output *printer.Output
	cmd := &cobra.Command{
		Use:     "invariants",
		Short:   "List the invariants that every run is judged by, each with its rules",
		Example: "  kmsharness invariants\n  kmsharness invariants -o wide",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var all []listedRule
			for _, inv := range append(check.Invariants(), x.Invariants...) {
				all = append(all, listedRule{ID: inv.ID, Statement: inv.Statement, Source: inv.Source})
				for _, r := range inv.Rules {
					all = append(all, listedRule{ID: check.Code(inv.ID, r.Code), Statement: r.Statement, House: r.House})
				}
			}
			table := printer.Table{Columns: []string{"ID", "STATEMENT", "SOURCE"}, Narrow: 2}
			for _, r := range all {
				table.Rows = append(table.Rows, []string{r.ID, r.Statement, r.Source + map[bool]string{true: "house rule"}[r.House]})
			}
			return output.PrintTable(cmd.OutOrStdout(), all, table)
		},
	}
	output = printer.AddFlag(cmd, printer.Wide)
	return cmd
}
