package cli

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/kmsharness/kmsharness/fakeplugin/fault"
	"github.com/kmsharness/kmsharness/fakeplugin/profile"
	"github.com/kmsharness/kmsharness/internal/printer"
)

// NewFaultsCommand lists what plugins can be made to do wrong. It needs no plugin.
func NewFaultsCommand(faults fault.Catalogue) *cobra.Command {
	var output *printer.Output
	cmd := &cobra.Command{
		Use: "faults [FAULT]", Short: "List every fault, or the parameters of one", Args: cobra.MaximumNArgs(1),
		Example:           "  kmsharness faults\n  kmsharness faults hang -o yaml",
		ValidArgsFunction: completeFirst(faults.Names()),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				return printFault(cmd.OutOrStdout(), output, faults, args[0])
			}
			all := faults.Definitions()
			table := printer.Table{Columns: []string{"FAULT", "WHAT IT DOES"}}
			for _, d := range all {
				table.Rows = append(table.Rows, []string{d.Name, d.Summary})
			}
			return output.PrintTable(cmd.OutOrStdout(), all, table)
		},
	}
	output = printer.AddFlag(cmd, printer.Wide)
	return cmd
}

// completeFirst completes the first argument of a command.
func completeFirst(values []string) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return values, cobra.ShellCompDirectiveDefault
	}
}

func printFault(w io.Writer, output *printer.Output, faults fault.Catalogue, name string) error {
	d, err := faults.Lookup(name)
	if err != nil {
		return err
	}
	d.Params = append(slices.Clone(d.Params), d.Bounds()...)
	if !output.Structured() {
		fmt.Fprintf(w, "%s: %s\n\n", d.Name, d.Summary)
	}
	table := printer.Table{Columns: []string{"PARAMETER", "KIND", "DEFAULT", "MEANING"}}
	for _, p := range d.Params {
		def := ""
		if p.Default != nil {
			def = fmt.Sprint(p.Default)
		}
		table.Rows = append(table.Rows, []string{p.Name, string(p.Kind), def, p.Summary})
	}
	return output.PrintTable(w, d, table)
}

// NewProfilesCommand needs no plugin: it is what the data files say.
func NewProfilesCommand(profiles profile.Catalogue) *cobra.Command {
	var output *printer.Output
	cmd := &cobra.Command{
		Use: "profiles [NAME|FILE]", Short: "List the provider profiles, or everything of one", Args: cobra.MaximumNArgs(1),
		Long: `List the provider profiles, or everything of one: the shape of its key_id, how long its calls take, and its failures with what each
method answers. A file of your own is read and checked.`,
		ValidArgsFunction: completeFirst(profiles.Names()),
		Example:           "  kmsharness profiles\n  kmsharness profiles vault\n  kmsharness profiles ./mine.yaml",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return printProfiles(cmd.OutOrStdout(), output, profiles)
			}
			p, err := profiles.Load(args[0])
			if err != nil {
				return err
			}
			return output.Print(cmd.OutOrStdout(), p, func(w io.Writer) error { return printProfile(w, p) })
		},
	}
	output = printer.AddFlag(cmd, printer.Wide)
	return cmd
}

func printProfiles(w io.Writer, output *printer.Output, profiles profile.Catalogue) error {
	var all []*profile.Profile
	table := printer.Table{Columns: []string{"PROFILE", "FAILURE", "WHAT HAS HAPPENED"}}
	for _, name := range profiles.Names() {
		p, err := profiles.Find(name)
		if err != nil {
			return err
		}
		all = append(all, p)
		for _, f := range p.Failures {
			table.Rows = append(table.Rows, []string{name, f.Name, f.Summary})
		}
	}
	return output.PrintTable(w, all, table)
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
