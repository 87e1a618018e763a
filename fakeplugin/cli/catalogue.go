package cli

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/kmsharness/kmsharness/fakeplugin/fault"
)

// NewCatalogueCommand needs no plugin: it is what this program knows.
func NewCatalogueCommand() *cobra.Command {
	return &cobra.Command{
		Use: "catalogue [FAULT]", Short: "List every fault, or the parameters of one", Args: cobra.MaximumNArgs(1),
		Example: "  kmsharness plugin catalogue\n  kmsharness plugin catalogue delay",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				return printFault(cmd.OutOrStdout(), args[0])
			}
			tab := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			fmt.Fprintln(tab, "FAULT\tWHAT IT DOES")
			for _, d := range fault.Catalogue() {
				fmt.Fprintf(tab, "%s\t%s\n", d.Name, d.Summary)
			}
			return tab.Flush()
		},
	}
}

func printFault(w io.Writer, name string) error {
	d, err := fault.Lookup(name)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "%s: %s\n\n", d.Name, d.Summary)
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tab, "PARAMETER\tKIND\tDEFAULT\tMEANING")
	for _, p := range append(append([]fault.Param{}, d.Params...), d.Bounds()...) {
		def := ""
		if p.Default != nil {
			def = fmt.Sprint(p.Default)
		}
		fmt.Fprintf(tab, "%s\t%s\t%s\t%s\n", p.Name, p.Kind, def, p.Summary)
	}
	return tab.Flush()
}
