// Package cli is the command line of the fake plugin: it serves a plugin or the remote KMS, and has verbs that control
// a running plugin through its control API. `fake-kms-plugin` has all commands, `kmsharness plugin` those that drive a plugin by hand.
//
// The other packages of fakeplugin implement the commands.
package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/kmsharness/kmsharness/fakeplugin/control/client"
	"github.com/kmsharness/kmsharness/fakeplugin/fault"
	"github.com/kmsharness/kmsharness/fakeplugin/plugin"
	"github.com/kmsharness/kmsharness/internal/entry"
	"github.com/kmsharness/kmsharness/internal/host"
	"github.com/kmsharness/kmsharness/internal/program"
)

// Configure changes what a plugin with keys of its own is made with, after the flags were read.
type Configure func(*plugin.Options)

// Options extend the program of another module. With the zero value it is this module's.
type Options struct {
	// Faults are those that can be injected, with the profiles that the plugin can have.
	Faults    fault.Catalogue
	Configure []Configure
}

// Run is the program fake-kms-plugin on this machine; it ends the process.
func Run(o Options) {
	entry.Run(func(ctx context.Context, args []string, stdout, stderr io.Writer) int {
		return o.Main(ctx, host.Host{}, args, stdout, stderr)
	})
}

// Main is the program fake-kms-plugin on a host. Its exit code is 0, or 2 with one line on stderr.
func Main(ctx context.Context, h host.Host, args []string, stdout, stderr io.Writer, configure ...Configure) int {
	return Options{Configure: configure}.Main(ctx, h, args, stdout, stderr)
}

// Main is the program with the options of another module.
func (o Options) Main(ctx context.Context, h host.Host, args []string, stdout, stderr io.Writer) int {
	var t target
	root := &cobra.Command{
		Use:   "fake-kms-plugin",
		Short: "A KMS v2 plugin that misbehaves on command",
		Long: `A KMS v2 plugin with real cryptography, a model of the remote KMS behind it, and faults that can be put in force and
released while it runs.`,
	}
	root.AddCommand(NewServeCommand(h, o), NewRemoteCommand(h), NewFaultsCommand(o.Faults), NewProfilesCommand(o.Faults.Profiles), kmsCommand())
	to := connect[*client.Client](t.connect)
	for _, verb := range append(driving(to, o.Faults), further(to)...) {
		t.register(verb) // not on the root: serve has a --control of its own
		root.AddCommand(verb)
	}
	if err := program.Execute(ctx, root, args, stdout, stderr); err != nil {
		fmt.Fprintln(stderr, "fake-kms-plugin:", err)
		return 2
	}
	return 0
}
