package kmsplugin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/kmsharness/kmsharness/conformance/plugin"
	pluginCLI "github.com/kmsharness/kmsharness/fakeplugin/cli"
	"github.com/kmsharness/kmsharness/fakeplugin/endpoint"
	"github.com/kmsharness/kmsharness/internal/host"
)

// Main runs the program of the mutants, and of further plugins, and returns its exit code.
func Main(ctx context.Context, args []string, stderr io.Writer, further ...Mutant) int {
	root := &cobra.Command{Use: "mutant-plugin", Short: "Serve a KMS v2 plugin that is wrong on purpose", SilenceUsage: true, SilenceErrors: true}
	root.AddCommand(newServeCommand(append(All(), further...), stderr), newHookCommand())
	root.SetArgs(args)
	root.SetErr(stderr)
	if err := root.ExecuteContext(ctx); err != nil {
		fmt.Fprintln(stderr, "mutant-plugin:", err)
		return 2
	}
	return 0
}

func newServeCommand(all []Mutant, stderr io.Writer) *cobra.Command {
	var name, listen, state, address string
	cmd := &cobra.Command{
		Use: "serve", Short: "Serve until SIGTERM", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			m, ok := find(all, name)
			if !ok && name != "" {
				return fmt.Errorf("--mutation %q: no mutant has this name", name)
			}
			at, err := endpoint.ParseUnix(listen)
			if err != nil {
				return fmt.Errorf("--listen: %w", err)
			}
			if state == "" {
				return errors.New("--state: expected a folder")
			}
			kms, err := OpenKMS(state)
			if err != nil {
				return err
			}
			if m.Fault != "" {
				return serveBehind(cmd.Context(), m.Fault, listen, state, kms, stderr)
			}
			r := NewReference(at, kms, stderr)
			r.Address = address
			if m.Change != nil {
				m.Change(r)
			}
			return r.Serve(cmd.Context())
		},
	}
	cmd.Flags().StringVar(&name, "mutation", "", "the mutant; empty: the correct plugin")
	cmd.Flags().StringVar(&listen, "listen", "", "unix:///PATH or unix:///@NAME")
	cmd.Flags().StringVar(&state, "state", "", "folder of the KMS")
	cmd.Flags().StringVar(&address, "address", "", "name by which the plugin knows the KMS")
	return cmd
}

// serveBehind serves the correct plugin behind the fake one, which makes the mistake.
func serveBehind(ctx context.Context, fault, listen, state string, kms *KMS, stderr io.Writer) error {
	behind, err := endpoint.ParseUnix("unix://" + filepath.Join(state, "behind.sock"))
	if err != nil {
		return fmt.Errorf("--state: %w", err)
	}
	all, ctx := errgroup.WithContext(ctx)
	all.Go(func() error { return NewReference(behind, kms, stderr).Serve(ctx) })
	all.Go(func() error {
		fake := pluginCLI.NewServeCommand(host.Host{}, pluginCLI.Options{})
		fake.SetArgs([]string{"--listen", listen, "--upstream", behind.String(), "--fault", fault})
		fake.SetErr(stderr)
		return fake.ExecuteContext(ctx)
	})
	return all.Wait()
}

func newHookCommand() *cobra.Command {
	var state string
	modes := []string{plugin.ModeFail, plugin.ModeHang, plugin.ModeRefuse, plugin.ModeLoseKey, plugin.ModeSlow, "restore", "rotate", "count"}
	cmd := &cobra.Command{
		Use: "hook MODE", Short: "Break, slow, restore or rotate the KMS of a plugin, or count the log-ins", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !slices.Contains(modes, args[0]) {
				return fmt.Errorf("hook %q: expected one of %v", args[0], modes)
			}
			kms, err := OpenKMS(state)
			if err != nil {
				return err
			}
			switch args[0] {
			case "rotate":
				return kms.Rotate()
			case "count":
				n, err := kms.LogIns()
				fmt.Fprintln(cmd.OutOrStdout(), n)
				return err
			}
			return kms.SetMode(args[0])
		},
	}
	cmd.Flags().StringVar(&state, "state", "", "folder of the KMS")
	return cmd
}
