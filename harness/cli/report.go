package cli

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/report"
	"github.com/kmsharness/kmsharness/harness/report/diverge"
	"github.com/kmsharness/kmsharness/harness/report/render"
	"github.com/kmsharness/kmsharness/internal/printer"
	"github.com/kmsharness/kmsharness/internal/program"
)

func newReportCommand() *cobra.Command {
	var out string
	var output *printer.Output
	cmd := &cobra.Command{
		Use:   "report DIR...",
		Short: "Write the HTML page and the summaries of runs again, from their histories",
		Long: `Read the histories below output folders (or of one scenario's folder), judge each again, and write index.html (one file, for
people), summary.md (for a comment on a pull request), summary.json (for programs) and junit.xml. Runs of several folders, for
example of the same catalogue on local and on kind, become columns of one page; junit.xml is then left as it is.
Exit codes: 0 everything passed, 1 something failed, 2 no verdict.`,
		Example: `  kmsharness report _artifacts
  kmsharness report /tmp/local /tmp/kind --out /tmp/both`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if out == "" && len(args) > 1 {
				return fmt.Errorf("report of %d folders: name the folder of the page with --out", len(args))
			}
			known, err := statementIDs()
			if err != nil {
				return err
			}
			return writeReport(cmd.OutOrStdout(), output, render.Options{Dirs: args, Out: cmp.Or(out, args[0]), JUnit: true, Statements: known})
		},
	}
	output = printer.AddFlag(cmd)
	cmd.Flags().StringVar(&out, "out", "", "folder for the files (default: DIR, if it is one)")
	return cmd
}

func writeReport(w io.Writer, output *printer.Output, o render.Options) error {
	written, err := render.Write(o)
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	err = output.Print(w, written.Machine, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "report: %s\n%s\n%s\n", written.Summary.Counts(), written.Page, written.Markdown)
		return err
	})
	return cmp.Or(err, exit(written.Summary.ExitCode()))
}

// exit ends a command whose verdict has been printed.
func exit(code int) error {
	if code != program.ExitPassed {
		return &program.ExitError{Code: code}
	}
	return nil
}

func newDiffCommand() *cobra.Command {
	hints := false
	var output *printer.Output
	cmd := &cobra.Command{
		Use:   "diff A B",
		Short: "Show where two histories of a scenario part, or compare the verdicts of two runs",
		Long: `A and B are two histories, or the output folders of two runs.

Histories are aligned by what was said (by each plugin, rollup, process …), not by the clock: two that differ in times only are the
same. Otherwise the first divergence is shown: the last thing that both have, then both sides. Times count from the beginning of the
healthy control before the steps.

Of two folders the scenarios are listed whose result differs, and the invariants that one run violates and the other does not: for
example of the same catalogue on local and on kind.

Exit codes: 0 the same, 1 different, 2 what cannot be read.`,
		Example: `  kmsharness diff /tmp/good/plugin-hangs/history.jsonl /tmp/bad/plugin-hangs/history.jsonl
  kmsharness diff /tmp/local /tmp/kind --hints`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			compare := func(w io.Writer, output *printer.Output, a, b string) (same bool, err error) {
				return compareRuns(w, output, a, b, hints)
			}
			if isFile(args[0]) && isFile(args[1]) {
				compare = compareHistories
			}
			same, err := compare(cmd.OutOrStdout(), output, args[0], args[1])
			switch {
			case err != nil:
				return fmt.Errorf("diff: %w", err)
			case !same:
				return program.Failed()
			}
			return nil
		},
	}
	output = printer.AddFlag(cmd)
	cmd.Flags().BoolVar(&hints, "hints", false, "of two runs, also show invariants that one passed and the other had nothing to judge by")
	return cmd
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.IsDir() || path == "-" // standard input
}

func compareHistories(w io.Writer, output *printer.Output, a, b string) (same bool, err error) {
	var sides [2][]history.Event
	for i, path := range []string{a, b} {
		if sides[i], err = history.ReadFile(path); err != nil {
			return false, err
		}
	}
	result := diverge.Compare(sides[0], sides[1])
	return result.Verdict != diverge.Different, output.Print(w, result, func(w io.Writer) error { return result.Print(w, [2]string{a, b}, sides) })
}

func compareRuns(w io.Writer, output *printer.Output, a, b string, hints bool) (same bool, err error) {
	var runs [2]map[string]report.Outcome
	for i, out := range []string{a, b} {
		if runs[i], err = report.Outcomes(out); err != nil {
			return false, err
		}
	}
	all := report.Compare(runs[0], runs[1], hints)
	same = !slices.ContainsFunc(all, func(d report.Difference) bool { return !d.Hint })
	return same, output.Print(w, all, func(w io.Writer) error {
		_, err := report.WriteDifferences(w, filepath.Clean(a), filepath.Clean(b), report.CountScenarios(runs[0], runs[1]), all)
		return err
	})
}
