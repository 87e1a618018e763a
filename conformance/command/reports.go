package command

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kmsharness/kmsharness/conformance"
	"github.com/kmsharness/kmsharness/internal/printer"
	"github.com/kmsharness/kmsharness/internal/program"
)

func newCompare(name string, suites func() (Suites, error)) *cobra.Command {
	var all bool
	var output *printer.Output
	cmd := &cobra.Command{
		Use:   "compare REPORT...",
		Short: "Compare reports: a matrix of checks and subjects",
		Long:  "Print a row for each check whose outcome differs between the reports. Exit code 1 if any differs.",
		Example: "  " + name + ` conform compare conformance/reports/*.yaml
  ` + name + " conform compare --all a/report.yaml b/report.yaml",
		Args: cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, files []string) error {
			reports, err := readReports(files, suites)
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
				return program.Failed()
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

func newRender(name string, suites func() (Suites, error)) *cobra.Command {
	var output *printer.Output
	cmd := &cobra.Command{
		Use:     "render REPORT",
		Short:   "Write a report as Markdown, HTML or text again",
		Example: "  " + name + " conform render -o markdown conformance/reports/fake-kms-plugin.yaml",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, files []string) error {
			reports, err := readReports(files, suites)
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

// readReports reads reports of known suites: of another one nobody could say which checks are absent.
func readReports(files []string, suites func() (Suites, error)) (reports []*conformance.Report, err error) {
	known, err := suites()
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		if info, err := os.Stat(file); err == nil && info.IsDir() {
			file = filepath.Join(file, "report.yaml")
		}
		r, err := conformance.ReadReport(file, func(suite string) []conformance.Check { return known[suite] })
		if err != nil {
			return nil, err
		}
		if known[r.Suite] == nil {
			return nil, fmt.Errorf("read the report %s: suite %q: expected %s", file, r.Suite, strings.Join(slices.Sorted(maps.Keys(known)), ", "))
		}
		reports = append(reports, r)
	}
	return reports, nil
}
