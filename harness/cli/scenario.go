package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/swaggest/jsonschema-go"

	"github.com/kmsharness/kmsharness/harness/coverage"
	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/harness/scenario/explain"
	"github.com/kmsharness/kmsharness/harness/scenario/standard"
	"github.com/kmsharness/kmsharness/internal/choice"
	"github.com/kmsharness/kmsharness/internal/printer"
	"github.com/kmsharness/kmsharness/internal/suggest"
	"github.com/kmsharness/kmsharness/internal/text"
	"github.com/kmsharness/kmsharness/scenarios"
	"github.com/kmsharness/kmsharness/scenarios/mutants"
)

func newScenarioCommand(x standard.Extensions) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "scenario",
		Short: "Write, check, explain and list scenarios",
	}
	cmd.AddCommand(newScenarioNewCommand(x), newScenarioLintCommand(x), newScenarioListCommand(x), newScenarioExplainCommand(x),
		newScenarioWatchCommand(x), newScenarioFieldsCommand(x))
	return cmd
}

func findScenario(x standard.Extensions, arg string) (*scenario.Scenario, error) {
	all, err := load(x, []string{arg})
	if err == nil && len(all) != 1 {
		err = fmt.Errorf("%s has %d scenarios, expected one file", arg, len(all))
	}
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

// load parses files and folders, and takes scenarios of the embedded catalogue by name where no file has that name. Every mistake of every file is
// in the error, one line each.
func load(x standard.Extensions, args []string) ([]*scenario.Scenario, error) {
	var paths, names []string
	for _, arg := range args {
		if _, err := os.Stat(arg); arg != "-" && errors.Is(err, fs.ErrNotExist) { // "-" is standard input
			names = append(names, arg)
		} else {
			paths = append(paths, filepath.Clean(arg))
		}
	}
	parser, err := x.Parser()
	if err != nil {
		return nil, err
	}
	all, err := parser.Load(paths...)
	if err != nil || len(names) == 0 {
		return all, err
	}
	catalogue, err := scenarios.Load()
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		s, err := named(catalogue, name)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(all, func(other *scenario.Scenario) bool { return other.Name == name }) {
			return nil, fmt.Errorf("%s: the scenario is given twice", name)
		}
		s.File = name // what runs it again, in any folder
		all = append(all, s)
	}
	return all, nil
}

func named(catalogue []*scenario.Scenario, name string) (*scenario.Scenario, error) {
	var known []string
	for _, s := range catalogue {
		if s.Name == name {
			return s, nil
		}
		known = append(known, s.Name)
	}
	typed := strings.TrimSuffix(filepath.Base(name), ".yaml")
	return nil, fmt.Errorf("%s: no file or folder, and no scenario of the catalogue, has this name%s", name, suggest.DidYouMean(typed, known))
}

func newScenarioLintCommand(x standard.Extensions) *cobra.Command {
	return &cobra.Command{
		Use:   "lint FILE|DIR|NAME...",
		Short: "Look for mistakes in scenario files, without running them",
		Long: `Every mistake of every file is told in one line: file:line:column: what, expected, did you mean. Exit code 0: there are none;
2: there are some.`,
		Example:           "  kmsharness scenario lint my-failure.yaml\n  kmsharness scenario lint scenarios/catalogue",
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: completeScenarios,
		RunE: func(cmd *cobra.Command, args []string) error {
			all, err := load(x, args)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s without mistakes\n", text.Count(len(all), "scenario"))
			return err
		},
	}
}

func newScenarioListCommand(x standard.Extensions) *cobra.Command {
	var area string
	var output *printer.Output
	var byStatement bool
	cmd := &cobra.Command{
		Use:               "list [FILE|DIR|NAME...]",
		Short:             "List scenarios: area, topology, faults, backends",
		ValidArgsFunction: completeScenarios,
		Long: `List the catalogue of this program, or the scenarios of files.

With --statements it lists the statements of the sources (scenarios/statements.yaml), and where each is judged:

  STATUS         covered: each wrong subject of the list fails by what stands beside it.
                 weak: a part of the statement has no wrong subject, or no real components.
                 outside: no harness can judge it. -o wide has the reasons.
  GATE, NIGHT    where those rules judge correct subjects, at each commit or at night only.
                 sim: real programs in virtual time, beside API servers in memory. local, kind:
                 real API servers, on kind with kubelets. plugin: conform plugin. test: Go tests.
  SCENARIOS      how many cite the statement, which alone shows nothing
  WRONG SUBJECT  and in parentheses the invariant, step, check or Go test by which it fails`,
		Example: "  kmsharness scenario list\n  kmsharness scenario list --area network -o wide\n  kmsharness scenario list --statements",
		RunE: func(cmd *cobra.Command, args []string) error {
			all, err := listed(x, args, area)
			if err != nil {
				return err
			}
			if byStatement {
				statements, err := scenarios.Statements()
				if err != nil {
					return err
				}
				covered, err := coverage.Statements(statements, all, mutants.Subjects())
				if err != nil {
					return err
				}
				return output.PrintTable(cmd.OutOrStdout(), covered, coverage.StatementTable(covered))
			}
			entries, err := coverage.Entries(all)
			if err != nil {
				return err
			}
			return output.PrintTable(cmd.OutOrStdout(), entries, coverage.Table(entries))
		},
	}
	choice.Add(cmd, &area, "area", "", "", "only those of this area", scenario.Areas()...)
	output = printer.AddFlag(cmd, printer.Wide)
	cmd.Flags().BoolVar(&byStatement, "statements", false, "list the statements of the sources, and where each is judged")
	return cmd
}

func listed(x standard.Extensions, paths []string, area string) (all []*scenario.Scenario, err error) {
	if len(paths) > 0 {
		all, err = load(x, paths)
	} else {
		all, err = scenarios.Load()
	}
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(s *scenario.Scenario) bool { return area != "" && s.Area != area }), nil
}

func newScenarioFieldsCommand(x standard.Extensions) *cobra.Command {
	var output *printer.Output
	cmd := &cobra.Command{
		Use:   "fields [WORD]",
		Short: "List the fields of scenario files, or print their JSON schema",
		Long: `List every field of a scenario file, or those whose path contains WORD: * if it is required, the meaning, and the values or the type.
With -o json it is the JSON schema. Editors with a YAML language server complete and check a file whose first line is:

  # yaml-language-server: $schema=FILE`,
		Example: "  kmsharness scenario fields\n  kmsharness scenario fields refuse -o wide\n  kmsharness scenario fields -o json > scenario.schema.json",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			schema, err := schemaOf(x)
			if err != nil {
				return err
			}
			word := strings.Join(args, "")
			rows, err := explain.Fields(schema, word)
			if err != nil {
				return err
			}
			if len(rows) == 0 {
				return fmt.Errorf("no field has %q in its path", word)
			}
			return output.PrintTable(cmd.OutOrStdout(), schema, printer.Table{Columns: []string{"FIELD", "MEANING"}, Rows: rows})
		},
	}
	output = printer.AddFlag(cmd, printer.Wide)
	return cmd
}

// schemaOf is the JSON schema of scenario files, with what another module adds.
func schemaOf(x standard.Extensions) (jsonschema.Schema, error) {
	parser, err := x.Parser()
	if err != nil {
		return jsonschema.Schema{}, err
	}
	return parser.Schema()
}
