package cli

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/kmsharness/kmsharness/harness/report/render"
	"github.com/kmsharness/kmsharness/internal/printer"
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
				return usage("report of %d folders: name the folder of the page with --out", len(args))
			}
			if out == "" {
				out = args[0]
			}
			known, err := statementIDs()
			if err != nil {
				return err
			}
			return writeReport(cmd.OutOrStdout(), output, render.Options{Dirs: args, Out: out, JUnit: true, Statements: known})
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
	err = printSummary(w, output, o.Out, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "report: %s\n%s\n%s\n", written.Summary.Counts(), written.Page, written.Markdown)
		return err
	})
	if err != nil {
		return err
	}
	if code := written.Summary.ExitCode(); code != ExitPassed {
		return &exitError{code: code}
	}
	return nil
}
