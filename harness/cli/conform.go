package cli

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kmsharness/kmsharness/conformance"
	"github.com/kmsharness/kmsharness/conformance/health"
	"github.com/kmsharness/kmsharness/conformance/plugin"
	"github.com/kmsharness/kmsharness/harness/result"
	"github.com/kmsharness/kmsharness/harness/undertest"
	"github.com/kmsharness/kmsharness/internal/printer"
)

func newConformCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "conform",
		Short: "Certify programs of others: KMS v2 plugins, reporters, aggregators",
		Long: `Run a suite of checks and write a report that can be published and compared. Each check has a stable id, a rule and the source of the rule.
Exit codes: 0 conformant, 1 not conformant, 2 could not run, inconclusive, or partial: checks were left out by --focus.`,
	}
	cmd.AddCommand(newConformPluginCommand(), newConformReporterCommand(), newConformAggregatorCommand(), newConformOperatorCommand(), newConformCompareCommand(), newConformRenderCommand())
	return cmd
}

type conformFlags struct {
	out, junit      string
	profiles, focus string
	skip            []string
	repeat          int
	seed            uint64
	list            bool
	system          *undertest.Flags
	output          *printer.Output
}

// register adds the flags of a suite, with those of the program that it certifies.
func (f *conformFlags) register(cmd *cobra.Command, suite string) {
	flags := cmd.Flags()
	f.system = undertest.AddFlags(cmd, suite)
	f.output = printer.AddFlag(cmd, printer.Wide)
	flags.StringVar(&f.out, "out", "_artifacts/conformance-"+suite, "folder for report.yaml, report.md and report.html; empty: none")
	flags.StringVar(&f.junit, "junit", "", "file for the results as JUnit; empty: none")
	flags.StringVar(&f.profiles, "profile", "", "profiles to check, separated by commas: core, extended, robustness (default: all)")
	flags.StringVar(&f.focus, "focus", "", "check only ids that match this regular expression; such a run is partial and ends with 2 unless a check fails")
	flags.StringArrayVar(&f.skip, "skip", nil, "leave a check out, ID=REASON; the report shows the reason; may be repeated")
	flags.IntVar(&f.repeat, "repeat", 1, "run the suite this many times; a check that fails once has failed")
	flags.Uint64Var(&f.seed, "seed", 1, "seed of what is random")
	flags.BoolVar(&f.list, "list", false, "list the checks and exit")
}

// selection is what the flags say about the checks to run.
func (f *conformFlags) selection() (s conformance.Selection, err error) {
	if f.repeat < 1 {
		return s, usage("--repeat %d: expected 1 or more", f.repeat)
	}
	if f.profiles != "" {
		if s.Profiles, err = conformance.ParseProfiles(f.profiles); err != nil {
			return s, usage("--profile: %v", err)
		}
	}
	if f.focus != "" {
		if s.Focus, err = regexp.Compile(f.focus); err != nil {
			return s, usage("--focus: %v", err)
		}
	}
	s.Skip = map[string]string{}
	for _, text := range f.skip {
		id, reason, ok := strings.Cut(text, "=")
		if !ok || strings.TrimSpace(reason) == "" {
			return s, usage("--skip %q: expected ID=REASON, with a reason", text)
		}
		s.Skip[id] = reason
	}
	return s, nil
}

// conclude completes a report, writes it, prints its end, and gives the exit code of the command. name is that of a product which has none.
func (f *conformFlags) conclude(cmd *cobra.Command, report *conformance.Report, p undertest.Product, name string) error {
	report.Implementation = conformance.Implementation{Name: cmp.Or(p.Name, name), Version: p.Version, Organization: p.Organization, URL: p.URL}
	report.Versions = versions()
	report.Reproduce = strings.Join(append([]string{cmd.CommandPath()}, shellWords(cmd.Flags(), "out", "junit")...), " ")
	if err := f.output.Print(cmd.OutOrStdout(), report, func(w io.Writer) error { report.Print(w); return nil }); err != nil {
		return err
	}
	if f.out != "" {
		err := errors.Join(
			result.Write(filepath.Join(f.out, "report.yaml"), report.Write),
			result.Write(filepath.Join(f.out, "report.md"), report.WriteMarkdown),
			result.Write(filepath.Join(f.out, "report.html"), report.WriteHTML),
		)
		if err != nil {
			return err
		}
		fmt.Fprintf(progressOf(cmd, f.output), "\nreport: %s\n", filepath.Join(f.out, "report.yaml"))
	}
	if f.junit != "" {
		if err := result.Write(f.junit, report.WriteJUnit); err != nil {
			return err
		}
	}
	return verdictError(report)
}

// verdictError gives the exit code of a verdict. A partial run is not conformance, and an inconclusive one neither a pass nor a failure.
func verdictError(report *conformance.Report) error {
	verdict := report.Verdict()
	switch verdict {
	case conformance.Conformant:
		return nil
	case conformance.NotConformant:
		return failed()
	case conformance.Partial:
		notRun := 0
		for _, p := range report.Profiles {
			notRun += p.NotRun
		}
		return usage("%s: %d checks of these profiles were not run: this is no conformance", verdict, notRun)
	}
	return usage("%s: the machine starved during %d checks: run again on a quieter machine", verdict, len(report.With(conformance.Inconclusive)))
}

// versions are those of this program and of the KMS API that it was built with.
func versions() map[string]string {
	all := map[string]string{"kmsharness": "(devel)"}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return all
	}
	if info.Main.Version != "" {
		all["kmsharness"] = info.Main.Version
	}
	for _, m := range info.Deps {
		if m.Path == "k8s.io/kms" {
			all[m.Path] = m.Version
		}
	}
	return all
}

var plain = regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./-]+$`)

// quoted is a word as a shell reads it.
func quoted(word string) string {
	if plain.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

func newConformCompareCommand() *cobra.Command {
	var all bool
	var output *printer.Output
	cmd := &cobra.Command{
		Use:   "compare REPORT...",
		Short: "Compare reports: a matrix of checks and subjects",
		Long:  "Print a row for each check whose outcome differs between the reports. Exit code 1 if any differs.",
		Example: `  kmsharness conform compare conformance/reports/*.yaml
  kmsharness conform compare --all a/report.yaml b/report.yaml`,
		Args: cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, files []string) error {
			reports, err := readReports(files)
			if err != nil {
				return err
			}
			var matrix bytes.Buffer
			equal, err := conformance.Compare(&matrix, reports, all)
			if err == nil {
				err = output.Print(cmd.OutOrStdout(), outcomes(reports), func(w io.Writer) error {
					_, err := matrix.WriteTo(w)
					return err
				})
			}
			if err == nil && !equal {
				return failed()
			}
			return err
		},
	}
	output = printer.AddFlag(cmd)
	cmd.Flags().BoolVar(&all, "all", false, "also checks whose outcomes are equal")
	return cmd
}

// outcomes of all checks, by their ids, of each report, by the name of its subject.
func outcomes(reports []*conformance.Report) map[string]map[string]conformance.Outcome {
	all := map[string]map[string]conformance.Outcome{}
	for _, report := range reports {
		for _, r := range report.Results {
			if all[r.ID] == nil {
				all[r.ID] = map[string]conformance.Outcome{}
			}
			all[r.ID][strings.TrimSpace(report.Implementation.Name+" "+report.Implementation.Version)] = r.Outcome
		}
	}
	return all
}

func newConformRenderCommand() *cobra.Command {
	var output *printer.Output
	cmd := &cobra.Command{
		Use:     "render REPORT",
		Short:   "Write a report as Markdown, HTML or text again",
		Example: "  kmsharness conform render -o markdown conformance/reports/fake-kms-plugin.yaml",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, files []string) error {
			reports, err := readReports(files)
			if err != nil {
				return err
			}
			return output.Print(cmd.OutOrStdout(), reports[0], func(w io.Writer) error {
				switch {
				case output.Is("markdown"):
					return reports[0].WriteMarkdown(w)
				case output.Is("html"):
					return reports[0].WriteHTML(w)
				}
				reports[0].Print(w)
				return nil
			})
		},
	}
	output = printer.AddFlag(cmd, "markdown", "html")
	return cmd
}

func printChecks(w io.Writer, output *printer.Output, checks []conformance.Check) error {
	table := printer.Table{Columns: []string{"CHECK", "PROFILE", "RULE", "NEEDS", "SOURCE"}, Narrow: 3}
	for _, c := range checks {
		var needs []string
		for _, n := range c.Needs {
			needs = append(needs, string(n))
		}
		table.Rows = append(table.Rows, []string{c.ID, string(c.Profile), c.Rule, strings.Join(needs, ","), c.Source})
	}
	err := output.PrintTable(w, checks, table)
	if err == nil && !output.Structured() {
		_, err = fmt.Fprintf(w, "%d checks\n", len(checks))
	}
	return err
}

// rules are all checks of each suite, by its name.
func rules() (map[string][]conformance.Check, error) {
	suites, err := health.Suites()
	if err != nil {
		return nil, err
	}
	all := map[string][]conformance.Check{"plugin": plugin.Rules(plugin.Catalogue())}
	for _, s := range suites {
		all[s.Name] = s.Rules()
	}
	return all, nil
}

func readReports(files []string) (reports []*conformance.Report, err error) {
	all, err := rules()
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		if info, err := os.Stat(file); err == nil && info.IsDir() {
			file = filepath.Join(file, "report.yaml")
		}
		r, err := conformance.ReadReport(file, func(suite string) []conformance.Check { return all[suite] })
		if err != nil {
			return nil, err
		}
		reports = append(reports, r)
	}
	return reports, nil
}
