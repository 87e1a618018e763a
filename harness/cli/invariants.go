package cli

import (
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/kmsharness/kmsharness/harness/check"
	"github.com/kmsharness/kmsharness/harness/scenario/standard"
)

func newInvariantsCommand(x standard.Extensions) *cobra.Command {
	return &cobra.Command{
		Use:     "invariants",
		Short:   "List the invariants that every run is judged by, each with its rules",
		Example: "  kmsharness invariants",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			tab := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			fmt.Fprintln(tab, "ID\tSTATEMENT\tSOURCE")
			for _, inv := range append(check.Invariants(), x.Invariants...) {
				fmt.Fprintf(tab, "%s\t%s\t%s\n", inv.ID, inv.Statement, inv.Source)
				for _, r := range inv.Rules {
					fmt.Fprintf(tab, "%s\t%s\t%s\n", check.Code(inv.ID, r.Code), r.Statement, map[bool]string{true: "house rule"}[r.House])
				}
			}
			return tab.Flush()
		},
	}
}
