package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/fakeplugin/profile"
	"github.com/kmsharness/kmsharness/harness/backend/live"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

type upFlags struct {
	controlPlanes int
	keyIDs        []string
	profile       string
	foreground    bool
	plugin        live.RealPlugin
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
			return f.run(cmd.Context(), cmd.OutOrStdout(), given(cmd.Flags(), "--"))
		},
	}
	cmd.Flags().IntVar(&f.controlPlanes, "control-planes", scenario.DefaultControlPlanes, "nodes, each with a kube-apiserver of its own; 1 to 7, 300 MB of memory each")
	cmd.Flags().StringSliceVar(&f.keyIDs, "key-ids", []string{"1"}, "plugins on every node, the write key first")
	cmd.Flags().StringVar(&f.profile, "profile", "", "provider that the plugins stand for: "+strings.Join(profile.Catalogue{}.Names(), ", "))
	pluginFlags(cmd.Flags(), &f.plugin)
	cmd.Flags().BoolVar(&f.foreground, "foreground", false, "stay, log to this terminal, and end everything at Ctrl-C")
	return cmd
}

// run also takes the flags, for the process in the background.
func (f *upFlags) run(ctx context.Context, w io.Writer, flags []string) error {
	if err := f.validate(); err != nil {
		return err
	}
	place, err := upPlaceOfUser()
	if err != nil {
		return err
	}
	if f.foreground {
		return f.serve(ctx, w, place)
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program, to start it in the background: %w", err)
	}
	state, err := detach(ctx, w, place, self, append([]string{"up", "--foreground"}, flags...))
	if err != nil {
		return err
	}
	return state.print(w)
}

func (f *upFlags) validate() error {
	if n := f.controlPlanes; n < 1 || n > scenario.MaxControlPlanes {
		return usage("--control-planes %d: expected 1 to %d", n, scenario.MaxControlPlanes)
	}
	if n := len(f.keyIDs); n < 1 || n > scenario.MaxKeyIDs {
		return usage("--key-ids: %d of them, expected 1 to %d", n, scenario.MaxKeyIDs)
	}
	if err := oneOf("profile", f.profile, profile.Catalogue{}.Names()...); f.profile != "" && err != nil {
		return err
	}
	if f.profile != "" && !f.plugin.IsZero() {
		return usage("--profile and --plugin-command: expected one of them, because the plugin under test has the provider that it has")
	}
	for i, id := range f.keyIDs {
		if _, err := contract.KeyIDOfSocket(contract.SocketPath("/", id)); err != nil {
			return usage("--key-ids %q: expected letters, digits and dashes, at most 63", id)
		}
		if slices.Contains(f.keyIDs[:i], id) {
			return usage("--key-ids %q: occurs twice", id)
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
