package cli

import (
	"github.com/spf13/cobra"

	"github.com/kmsharness/kmsharness/harness/check"
	"github.com/kmsharness/kmsharness/harness/scenario/standard"
	"github.com/kmsharness/kmsharness/internal/printer"
)

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
			table := printer.Table{Columns: []string{"ID", "STATEMENT", "SOURCE"}, Narrow: 2}
			for _, inv := range append(check.Invariants(), x.Invariants...) {
				all = append(all, listedRule{ID: inv.ID, Statement: inv.Statement, Source: inv.Source})
				table.Rows = append(table.Rows, []string{inv.ID, inv.Statement, inv.Source})
				for _, r := range inv.Rules {
					code := check.Code(inv.ID, r.Code)
					all = append(all, listedRule{ID: code, Statement: r.Statement, House: r.House})
					table.Rows = append(table.Rows, []string{code, r.Statement, map[bool]string{true: "house rule"}[r.House]})
				}
			}
			return output.PrintTable(cmd.OutOrStdout(), all, table)
		},
	}
	output = printer.AddFlag(cmd, printer.Wide)
	return cmd
}
