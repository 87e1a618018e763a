package cli

import (
	"fmt"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/fakeplugin/profile"
	"github.com/kmsharness/kmsharness/harness/backend/choose"
	"github.com/kmsharness/kmsharness/harness/backend/local"
	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/harness/undertest"
	"github.com/kmsharness/kmsharness/internal/choice"
	"github.com/kmsharness/kmsharness/internal/printer"
	"github.com/kmsharness/kmsharness/internal/program"
)

type upFlags struct {
	controlPlanes int
	keyIDs        []string
	profile       string
	foreground    bool
	stateFD       int // of the pipe to the process that waits until the environment is ready; 0: none does
	output        *printer.Output
	system        *undertest.Flags
	sut           undertest.System
}

func newUpCommand() *cobra.Command {
	var f upFlags
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Boot a control plane to look at and to break by hand",
		Long: `Boot etcd, kube-apiservers, plugins, reporters and an aggregator on this machine, and leave them running until
kmsharness down. There is one such environment per user. Everything that happens is recorded to a history, which grows,
in memory too: this is for an afternoon, not for a week.`,
		Example: `  kmsharness up
  kmsharness up --control-planes 1 --key-ids 2,1
  kmsharness up --profile vault
  kmsharness up --foreground`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.run(cmd, program.Given(cmd.Flags(), "--", "output"))
		},
	}
	cmd.Flags().IntVar(&f.controlPlanes, "control-planes", scenario.DefaultControlPlanes, "nodes, each with a kube-apiserver of its own; 1 to 7, 300 MB of memory each")
	cmd.Flags().StringSliceVar(&f.keyIDs, "key-ids", []string{"1"}, "plugins on every node, the write key first")
	choice.Add(cmd, &f.profile, "profile", "", "", "provider that the plugins stand for: "+choice.Or(profile.Catalogue{}.Names()), profile.Catalogue{}.Names()...)
	f.system, f.output = undertest.AddFlags(cmd), printer.AddFlag(cmd)
	cmd.Flags().BoolVar(&f.foreground, "foreground", false, "stay, log to this terminal, and end everything at Ctrl-C")
	cmd.Flags().IntVar(&f.stateFD, "state-fd", 0, "write the state to this file descriptor when the environment is ready")
	_ = cmd.Flags().MarkHidden("state-fd") // it exists
	return cmd
}

// run also takes the flags, for the process in the background.
func (f *upFlags) run(cmd *cobra.Command, flags []string) error {
	ctx, progress := cmd.Context(), program.Progress(cmd, f.output)
	if err := f.validate(); err != nil {
		return err
	}
	if _, err := choose.New(local.Name, choose.Options{Options: local.Options{System: f.sut}}); err != nil {
		return f.system.Explain(err)
	}
	place, err := upPlaceOfUser()
	if err != nil {
		return err
	}
	if f.foreground {
		return f.serve(ctx, cmd.OutOrStdout(), place)
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program, to start it in the background: %w", err)
	}
	state, err := detach(ctx, progress, place, self, append([]string{"up", "--foreground", "--state-fd=3"}, flags...))
	if err != nil {
		return err
	}
	return f.output.Print(cmd.OutOrStdout(), state, state.print)
}

func (f *upFlags) validate() (err error) {
	if f.sut, err = f.system.System(); err != nil {
		return err
	}
	if n := f.controlPlanes; n < 1 || n > scenario.MaxControlPlanes {
		return fmt.Errorf("--control-planes %d: expected 1 to %d", n, scenario.MaxControlPlanes)
	}
	if n := len(f.keyIDs); n < 1 || n > scenario.MaxKeyIDs {
		return fmt.Errorf("--key-ids: %d of them, expected 1 to %d", n, scenario.MaxKeyIDs)
	}
	if f.profile != "" && !f.sut.Plugin.IsZero() {
		return fmt.Errorf("--profile and --plugin-command: expected one of them, because the plugin under test has the provider that it has")
	}
	for i, id := range f.keyIDs {
		if _, err := contract.KeyIDOfSocket(contract.SocketPath("/", id)); err != nil {
			return fmt.Errorf("--key-ids %q: expected letters, digits and dashes, at most 63", id)
		}
		if slices.Contains(f.keyIDs[:i], id) {
			return fmt.Errorf("--key-ids %q: occurs twice", id)
		}
	}
	return nil
}

// scenario is one without steps: a topology that runs.
func (f *upFlags) scenario() *scenario.Scenario {
	return scenario.Scenario{
		Name: "up", Title: "An environment to look at.", Area: "interactive",
		Topology: scenario.Topology{ControlPlanes: f.controlPlanes, KeyIDs: f.keyIDs, Profile: f.profile},
	}.WithDefaults()
}
