package cli

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/kmsharness/kmsharness/harness/check"
)

func newInvariantsCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "invariants",
		Short:   "List the invariants that every run is judged by",
		Example: "  kmsharness invariants",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			tab := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			fmt.Fprintln(tab, "ID\tSTATEMENT\tSOURCE\tHOUSE RULES IN IT")
			for _, inv := range check.Invariants() {
				fmt.Fprintf(tab, "%s\t%s\t%s\t%s\n", inv.ID, inv.Statement, inv.Source, strings.Join(inv.House, "; "))
			}
			return tab.Flush()
		},
	}
}
