package cli

import (
	"slices"

	"github.com/spf13/cobra"

	"github.com/kmsharness/kmsharness/harness/coverage"
	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/scenarios"
)

func newScenarioListCommand() *cobra.Command {
	var area string
	cmd := &cobra.Command{
		Use:     "list [FILE|DIR|NAME...]",
		Short:   "List scenarios: area, topology, faults, backends",
		Long:    "List the catalogue that the program carries along, or the scenarios of files.",
		Example: "  kmsharness scenario list\n  kmsharness scenario list --area network",
		RunE: func(cmd *cobra.Command, args []string) error {
			all, err := listed(args, area)
			if err != nil {
				return err
			}
			entries, err := coverage.Entries(all)
			if err != nil {
				return err
			}
			return coverage.Table(cmd.OutOrStdout(), entries)
		},
	}
	cmd.Flags().StringVar(&area, "area", "", "only those of this area")
	return cmd
}

func listed(paths []string, area string) (all []*scenario.Scenario, err error) {
	if area != "" && !slices.Contains(scenario.Areas(), area) {
		return nil, usage("--area %q: expected one of %v", area, scenario.Areas())
	}
	if len(paths) > 0 {
		all, err = load(paths)
	} else {
		all, err = scenarios.Load()
	}
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(s *scenario.Scenario) bool { return area != "" && s.Area != area }), nil
}
