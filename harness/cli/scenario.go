package cli

import (
	"slices"

	"github.com/spf13/cobra"

	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/scenarios"
)

func newScenarioCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "scenario",
		Short: "Write, check, explain and list scenarios",
	}
	cmd.AddCommand(newScenarioNewCommand(), newScenarioLintCommand(), newScenarioListCommand(), newScenarioExplainCommand(),
		newScenarioWatchCommand(), newScenarioSchemaCommand())
	return cmd
}

// findScenario is one by its file, or by its name in the catalogue that the program carries along.
func findScenario(arg string) (*scenario.Scenario, error) {
	all, fileErr := load([]string{arg})
	if fileErr == nil && len(all) == 1 {
		return all[0], nil
	}
	if fileErr == nil {
		return nil, usage("%s has %d scenarios, expected one file", arg, len(all))
	}
	carried, err := scenarios.Load()
	if err != nil {
		return nil, err
	}
	if i := slices.IndexFunc(carried, func(s *scenario.Scenario) bool { return s.Name == arg }); i >= 0 {
		return carried[i], nil
	}
	return nil, fileErr
}
