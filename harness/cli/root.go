package cli

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

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
	switch {
	case errors.As(err, &mistakes):
		fmt.Fprintln(stderr, err) // each line begins with file:line:column, which editors and CI look for
	case err != nil && err.Error() != "":
		fmt.Fprintln(stderr, "kmsharness:", err)
	}
	return exitCode(err)
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
	root.AddCommand(newRunCommand(x), newE2ECommand(), newCheckCommand(x), newReportCommand(), newDiffCommand(), newTraceCommand(), newUpCommand(), newDownCommand(), newSimulateCommand(), newScenarioCommand(x), newInvariantsCommand(x), pluginCLI.NewFaultsCommand(x.Faults), newConformCommand(), newPreflightCommand(), pluginCLI.NewProfilesCommand(x.Faults.Profiles), pluginCLI.NewPluginCommand(x.Faults))
	return root
}

// Exit codes of every command.
const (
	ExitPassed      = 0
	ExitFailed      = 1 // something was judged and did not hold
	ExitCouldNotRun = 2 // nothing can be said about the system under test
)

// exitError carries an exit code through cobra. An empty text has been told already.
type exitError struct {
	code int
	text string
}

func (e *exitError) Error() string { return e.text }

// failed ends a command whose verdict has been printed.
func failed() error { return &exitError{code: ExitFailed} }

// exitCode of what a command returned; everything that is not a verdict means that it could not run.
func exitCode(err error) int {
	var e *exitError
	switch {
	case err == nil:
		return ExitPassed
	case errors.As(err, &e):
		return e.code
	default:
		return ExitCouldNotRun
	}
}

// usage is a mistake on the command line, told in one line.
func usage(format string, args ...any) error {
	return &exitError{code: ExitCouldNotRun, text: fmt.Sprintf(format, args...)}
}
