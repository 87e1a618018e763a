package cli

import (
	"github.com/spf13/cobra"

	pluginCLI "github.com/kmsharness/kmsharness/fakeplugin/cli"
)

// newFaultsCommand is the fault catalogue where authors of scenarios look for it.
func newFaultsCommand() *cobra.Command {
	cmd := pluginCLI.NewCatalogueCommand()
	cmd.Use, cmd.Example = "faults [FAULT]", "  kmsharness faults\n  kmsharness faults hang"
	return cmd
}
