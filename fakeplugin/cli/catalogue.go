package cli

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/kmsharness/kmsharness/fakeplugin/fault"
	"github.com/kmsharness/kmsharness/fakeplugin/profile"
)

// NewCatalogueCommand needs no plugin: it is what this program knows.
func NewCatalogueCommand(faults fault.Catalogue) *cobra.Command {
	return &cobra.Command{
		Use: "catalogue [FAULT]", Short: "List every fault, or the parameters of one", Args: cobra.MaximumNArgs(1),
		Example: "  kmsharness plugin catalogue\n  kmsharness plugin catalogue delay",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				return printFault(cmd.OutOrStdout(), faults, args[0])
			}
			tab := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			fmt.Fprintln(tab, "FAULT\tWHAT IT DOES")
			for _, d := range faults.Definitions() {
				fmt.Fprintf(tab, "%s\t%s\n", d.Name, d.Summary)
			}
			return tab.Flush()
		},
	}
}

func printFault(w io.Writer, faults fault.Catalogue, name string) error {
	d, err := faults.Lookup(name)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "%s: %s\n\n", d.Name, d.Summary)
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tab, "PARAMETER\tKIND\tDEFAULT\tMEANING")
	for _, p := range append(append([]fault.Param{}, d.Params...), d.Bounds()...) {
		def := ""
		if p.Default != nil {
			def = fmt.Sprint(p.Default)
		}
		fmt.Fprintf(tab, "%s\t%s\t%s\t%s\n", p.Name, p.Kind, def, p.Summary)
	}
	return tab.Flush()
}

// NewProfilesCommand needs no plugin: it is what the data files say.
func NewProfilesCommand(profiles profile.Catalogue) *cobra.Command {
	return &cobra.Command{
		Use: "profiles [NAME|FILE]", Short: "List the provider profiles, or everything of one", Args: cobra.MaximumNArgs(1),
		Long: `List the provider profiles, or everything of one: the shape of its key_id, how long its calls take, and its failures with what each
method answers. A file of your own is read and checked.`,
		Example: "  kmsharness profiles\n  kmsharness profiles vault\n  kmsharness profiles ./mine.yaml",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return printProfiles(cmd.OutOrStdout(), profiles)
			}
			p, err := profiles.Load(args[0])
			if err != nil {
				return err
			}
			return printProfile(cmd.OutOrStdout(), p)
		},
	}
}

func printProfiles(w io.Writer, profiles profile.Catalogue) error {
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tab, "PROFILE\tFAILURE\tWHAT HAS HAPPENED")
	for _, name := range profiles.Names() {
		p, err := profiles.Find(name)
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
	if l := p.Lease; l != nil {
		fmt.Fprintf(w, "\nlease: %v, with renewals %v; calls after its end fail with %s, log-ins that are refused with %s\n", l.TTL, l.Longest, l.Lost, l.Refused)
	}
	for _, f := range p.Failures {
		fmt.Fprintf(w, "\n%s: %s\n  from: %s\n", f.Name, f.Summary, f.Source)
		for _, m := range f.Strikes() {
			fmt.Fprintf(w, "  %s: %s\n", m, f.Methods[m])
		}
	}
	return nil
}
