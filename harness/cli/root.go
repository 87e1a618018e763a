package cli

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	pluginCLI "github.com/kmsharness/kmsharness/fakeplugin/cli"
	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/internal/printer"
	"github.com/kmsharness/kmsharness/internal/program"
)

// Main runs the command and returns its exit code. Errors are one line on stderr.
func Main(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	err := program.Execute(ctx, newRoot(), args, printer.WithColours(stdout), stderr)
	var mistakes scenario.Problems
	switch {
	case errors.As(err, &mistakes):
		fmt.Fprintln(stderr, err) // each line begins with file:line:column, which editors and CI look for
	case err != nil && err.Error() != "":
		fmt.Fprintln(stderr, "kmsharness:", err)
	}
	return exitCode(err)
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "kmsharness",
		Short: "Test KMS v2 encryption health in Kubernetes and OpenShift control planes",
		Long: `kmsharness boots a real control plane with KMS v2 encryption, breaks it on purpose, and judges what the health
reporters and the aggregator made of it. Exit codes: 0 passed, 1 failed, 2 could not run, inconclusive or interrupted.`,
	}
	root.PersistentFlags().BoolP("verbose", "v", false, "also show each step of scenarios that run side by side")
	root.PersistentFlags().BoolP("quiet", "q", false, "print results only, and no progress")
	root.AddCommand(newRunCommand(), newE2ECommand(), newCheckCommand(), newReportCommand(), newDiffCommand(), newTraceCommand(), newUpCommand(), newDownCommand(), newSimulateCommand(), newScenarioCommand(), newInvariantsCommand(), pluginCLI.NewFaultsCommand(), newConformCommand(), newPreflightCommand(), pluginCLI.NewProfilesCommand(), pluginCLI.NewPluginCommand())
	return root
}
