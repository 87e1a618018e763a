package cli

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/harness/scenario/standard"
	"github.com/kmsharness/kmsharness/internal/suggest"
	"github.com/kmsharness/kmsharness/scenarios"
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

// findScenario finds one scenario as load does.
func findScenario(x standard.Extensions, arg string) (*scenario.Scenario, error) {
	all, err := load(x, []string{arg})
	if err == nil && len(all) != 1 {
		err = usage("%s has %d scenarios, expected one file", arg, len(all))
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
			return nil, usage("%s: the scenario is given twice", name)
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
	return nil, usage("%s: no file or folder, and no scenario of the catalogue, has this name%s", name, suggest.DidYouMean(typed, known))
}
