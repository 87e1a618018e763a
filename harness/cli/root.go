package cli

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	conform "github.com/kmsharness/kmsharness/conformance/command"
	pluginCLI "github.com/kmsharness/kmsharness/fakeplugin/cli"
	"github.com/kmsharness/kmsharness/harness/cluster/virtual/bubble"
	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/harness/scenario/standard"
	"github.com/kmsharness/kmsharness/internal/entry"
	"github.com/kmsharness/kmsharness/internal/printer"
	"github.com/kmsharness/kmsharness/internal/program"
)

// Run is the program kmsharness with the extensions of another module; it ends the process.
func Run(x standard.Extensions) {
	// What runs in virtual time needs a program that began as tests do.
	bubble.Main(func() {
		entry.Run(func(ctx context.Context, args []string, stdout, stderr io.Writer) int {
			return runMain(ctx, x, args, stdout, stderr)
		})
	})
}

// Main runs the command and returns its exit code. Errors are one line on stderr.
func Main(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	return runMain(ctx, standard.Extensions{}, args, stdout, stderr)
}

func runMain(ctx context.Context, x standard.Extensions, args []string, stdout, stderr io.Writer) int {
	err := program.Execute(ctx, Command(x), args, printer.WithColours(stdout), stderr)
	var mistakes scenario.Problems
	if errors.As(err, &mistakes) {
		fmt.Fprintln(stderr, err) // each line begins with file:line:column, which editors and CI look for
		return program.ExitCouldNotRun
	}
	return program.Exit(stderr, "kmsharness", err)
}

// Command is the command kmsharness. A program that has it must begin with bubble.Main.
func Command(x standard.Extensions) *cobra.Command {
	root := &cobra.Command{
		Use:   "kmsharness",
		Short: "Test KMS v2 encryption health in Kubernetes and OpenShift control planes",
		Long: `kmsharness boots a real control plane with KMS v2 encryption, breaks it on purpose, and judges what the health
reporters and the aggregator made of it. Exit codes: 0 passed, 1 failed, 2 could not run, inconclusive or interrupted.`,
	}
	root.PersistentFlags().BoolP("verbose", "v", false, "also show each step of scenarios that run side by side")
	root.PersistentFlags().BoolP("quiet", "q", false, "print results only, and no progress")
	root.AddCommand(newRunCommand(x), newE2ECommand(), newCheckCommand(x), newReportCommand(), newDiffCommand(), newTraceCommand(), newObserveCommand(), newUpCommand(), newDownCommand(), newSimulateCommand(), newScenarioCommand(x), newInvariantsCommand(x), pluginCLI.NewFaultsCommand(x.Faults), newConformCommand(), conform.NewPreflight("kmsharness"), pluginCLI.NewProfilesCommand(x.Faults.Profiles), pluginCLI.NewPluginCommand(x.Faults))
	return root
}
