package cli

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/kmsharness/kmsharness/fakeplugin/control"
	"github.com/kmsharness/kmsharness/fakeplugin/control/client"
	"github.com/kmsharness/kmsharness/fakeplugin/profile"
)

func (t *target) profile() *cobra.Command {
	return &cobra.Command{
		Use: "profile [NAME]", Short: "Make the plugin stand for a provider, or for none", Args: cobra.MaximumNArgs(1),
		Example: "  kmsharness plugin profile aws\n  kmsharness plugin inject provider-failure failure=credentials-expired\n  kmsharness plugin profile",
		RunE: func(cmd *cobra.Command, args []string) error {
			var name string
			if len(args) == 1 {
				name = args[0]
			}
			return t.ask(cmd, func(ctx context.Context, c *client.Client) (any, error) {
				return control.Profile{Profile: name}, c.SetProfile(ctx, name)
			})
		},
	}
}

// NewProfilesCommand needs no plugin: it is what the data files say.
func NewProfilesCommand() *cobra.Command {
	return &cobra.Command{
		Use: "profiles [NAME|FILE]", Short: "List the provider profiles, or everything of one", Args: cobra.MaximumNArgs(1),
		Long: `List the provider profiles, or everything of one: the shape of its key_id, how long its calls take, and its failures with what each
method answers. A file of your own is read and checked.`,
		Example: "  kmsharness profiles\n  kmsharness profiles vault\n  kmsharness profiles ./mine.yaml",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return printProfiles(cmd.OutOrStdout())
			}
			p, err := profile.Load(args[0])
			if err != nil {
				return err
			}
			return printProfile(cmd.OutOrStdout(), p)
		},
	}
}

func printProfiles(w io.Writer) error {
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tab, "PROFILE\tFAILURE\tWHAT HAS HAPPENED")
	for _, name := range profile.Names() {
		p, err := profile.Builtin(name)
		if err != nil {
			return err
		}
		for _, f := range p.Failures {
			fmt.Fprintf(tab, "%s\t%s\t%s\n", name, f.Name, f.Summary)
		}
	}
	return tab.Flush()
}

func printProfile(w io.Writer, p *profile.Profile) error {
	shows := "a rotation does not show in it"
	if p.KeyID.ChangesOnRotation {
		shows = "a rotation shows in it"
	}
	fmt.Fprintf(w, "%s: %s\nplugin: %s\nkey_id: %s: %s. %s\n\n", p.Name, p.Summary, p.Plugin, p.KeyID.Template, shows, p.KeyID.Why)
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tab, "LATENCY\tLEAST\tHALF\t99 OF 100\tMOST")
	for _, m := range profile.Methods() {
		l := p.Latency[m]
		fmt.Fprintf(tab, "%s\t%v\t%v\t%v\t%v\n", m, l.Least, l.Half, l.Most99, l.Most)
	}
	if err := tab.Flush(); err != nil {
		return err
	}
	for _, f := range p.Failures {
		fmt.Fprintf(w, "\n%s: %s\n  from: %s\n", f.Name, f.Summary, f.Source)
		for _, m := range f.Strikes() {
			fmt.Fprintf(w, "  %s: %s\n", m, f.Methods[m])
		}
	}
	return nil
}
