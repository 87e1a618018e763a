package command

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kmsharness/kmsharness/conformance"
	"github.com/kmsharness/kmsharness/harness/undertest"
	"github.com/kmsharness/kmsharness/internal/atomicfile"
	"github.com/kmsharness/kmsharness/internal/printer"
	"github.com/kmsharness/kmsharness/internal/program"
)

// Flags are those of the commands that run a suite.
type Flags struct {
	Out    string // folder of the report; empty: none
	Repeat int
	Seed   uint64
	List   bool
	System *undertest.Flags
	Output *printer.Output

	junit           string
	profiles, focus string
	skip            []string
}

// Register adds the flags of a suite, with those of the program that it certifies.
func (f *Flags) Register(cmd *cobra.Command, suite string) {
	flags := cmd.Flags()
	f.System = undertest.AddFlags(cmd, suite)
	f.Output = printer.AddFlag(cmd, printer.Wide)
	flags.StringVar(&f.Out, "out", "_artifacts/conformance-"+suite, "folder for report.yaml, report.md and report.html; empty: none")
	flags.StringVar(&f.junit, "junit", "", "file for the results as JUnit; empty: none")
	flags.StringVar(&f.profiles, "profile", "", "profiles to check, separated by commas: core, extended, robustness (default: all)")
	flags.StringVar(&f.focus, "focus", "", "check only ids that match this regular expression; such a run is partial and ends with 2 unless a check fails")
	flags.StringArrayVar(&f.skip, "skip", nil, "leave a check out, ID=REASON; the report shows the reason; may be repeated")
	flags.IntVar(&f.Repeat, "repeat", 1, "run the suite this many times; a check that fails once has failed")
	flags.Uint64Var(&f.Seed, "seed", 1, "seed of what is random")
	flags.BoolVar(&f.List, "list", false, "list the checks and exit")
}

// Selection is what the flags say about the checks to run.
func (f *Flags) Selection() (s conformance.Selection, err error) {
	if f.Repeat < 1 {
		return s, fmt.Errorf("--repeat %d: expected 1 or more", f.Repeat)
	}
	if f.profiles != "" {
		if s.Profiles, err = conformance.ParseProfiles(f.profiles); err != nil {
			return s, fmt.Errorf("--profile: %w", err)
		}
	}
	if f.focus != "" {
		if s.Focus, err = regexp.Compile(f.focus); err != nil {
			return s, fmt.Errorf("--focus: %w", err)
		}
	}
	s.Skip = map[string]string{}
	for _, text := range f.skip {
		id, reason, ok := strings.Cut(text, "=")
		if !ok || strings.TrimSpace(reason) == "" {
			return s, fmt.Errorf("--skip %q: expected ID=REASON, with a reason", text)
		}
		s.Skip[id] = reason
	}
	return s, nil
}

// Conclude completes a report, writes it, prints its end, and gives the exit code of the command. name is that of a product which has none.
func (f *Flags) Conclude(cmd *cobra.Command, report *conformance.Report, p undertest.Product, name string) error {
	report.Implementation = conformance.Implementation{Name: cmp.Or(p.Name, name), Version: p.Version, Organization: p.Organization, URL: p.URL}
	report.Versions = versions()
	report.Reproduce = strings.Join(append([]string{cmd.CommandPath()}, program.ShellWords(cmd.Flags(), "out", "junit")...), " ")
	if err := f.Output.Print(cmd.OutOrStdout(), report, func(w io.Writer) error { report.Print(w); return nil }); err != nil {
		return err
	}
	if f.Out != "" {
		err := errors.Join(
			atomicfile.WriteTo(filepath.Join(f.Out, "report.yaml"), report.Write),
			atomicfile.WriteTo(filepath.Join(f.Out, "report.md"), report.WriteMarkdown),
			atomicfile.WriteTo(filepath.Join(f.Out, "report.html"), report.WriteHTML),
		)
		if err != nil {
			return err
		}
		fmt.Fprintf(program.Progress(cmd, f.Output), "\nreport: %s\n", filepath.Join(f.Out, "report.yaml"))
	}
	if f.junit != "" {
		if err := atomicfile.WriteTo(f.junit, report.WriteJUnit); err != nil {
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
		return program.Failed()
	case conformance.Partial:
		notRun := 0
		for _, p := range report.Profiles {
			notRun += p.NotRun
		}
		return fmt.Errorf("%s: %d checks of these profiles were not run: this is no conformance", verdict, notRun)
	}
	return fmt.Errorf("%s: the machine starved during %d checks: run again on a quieter machine", verdict, len(report.With(conformance.Inconclusive)))
}

// versions are those of the suite and of the KMS API that it was built with.
func versions() map[string]string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	all := map[string]string{"kmsharness": cmp.Or(info.Main.Version, "(devel)")}
	for _, m := range info.Deps {
		if m.Path == "k8s.io/kms" {
			all[m.Path] = m.Version
		}
	}
	return all
}
