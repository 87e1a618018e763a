package cli

import (
	"github.com/spf13/cobra"

	pluginCLI "github.com/kmsharness/kmsharness/fakeplugin/cli"
	"github.com/kmsharness/kmsharness/harness/scenario/standard"
)

// newFaultsCommand is the fault catalogue where authors of scenarios look for it.
func newFaultsCommand(x standard.Extensions) *cobra.Command {
	cmd := pluginCLI.NewCatalogueCommand(x.Faults)
	cmd.Use, cmd.Example = "faults [FAULT]", "  kmsharness faults\n  kmsharness faults hang"
	return cmd
}
