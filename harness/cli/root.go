package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	pluginCLI "github.com/kmsharness/kmsharness/fakeplugin/cli"
)

// Main runs the command and returns its exit code. Errors are one line on stderr.
func Main(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	if err != nil && err.Error() != "" {
		fmt.Fprintln(stderr, "kmsharness:", suggestInLine(err.Error()))
	}
	return exitCode(err)
}

// suggestInLine puts what cobra suggests instead of an unknown command on the line of the mistake.
func suggestInLine(text string) string {
	mistake, suggestions, ok := strings.Cut(text, "\n\nDid you mean this?\n")
	if !ok {
		return text
	}
	return mistake + ", did you mean " + strings.Join(strings.Fields(suggestions), " or ") + "?"
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "kmsharness",
		Short: "Test KMS v2 encryption health in Kubernetes and OpenShift control planes",
		Long: `kmsharness boots a real control plane with KMS v2 encryption, breaks it on purpose, and judges what the health
reporters and the aggregator made of it. Exit codes: 0 passed, 1 failed, 2 could not run, inconclusive or interrupted.`,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(newRunCommand(), newE2ECommand(), newCheckCommand(), newReportCommand(), newDiffCommand(), newTraceCommand(), newUpCommand(), newDownCommand(), newSimulateCommand(), newScenarioCommand(), newInvariantsCommand(), newFaultsCommand(), newConformCommand(), newPreflightCommand(), pluginCLI.NewProfilesCommand(), pluginCLI.NewPluginCommand())
	return root
}
