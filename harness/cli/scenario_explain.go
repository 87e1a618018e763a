package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/cluster"
	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/harness/scenario/explain"
	"github.com/kmsharness/kmsharness/harness/scenario/standard"
	"github.com/kmsharness/kmsharness/internal/text"
	"github.com/kmsharness/kmsharness/scenarios"
)

func newScenarioExplainCommand(x standard.Extensions) *cobra.Command {
	var production bool
	cmd := &cobra.Command{
		Use:               "explain FILE|NAME",
		Short:             "Say what a scenario is going to do: its timeline in words and as a chart",
		Example:           "  kmsharness scenario explain my-failure.yaml\n  kmsharness scenario explain plugin-hangs",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeScenarios,
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := findScenario(x, args[0])
			if err != nil {
				return err
			}
			timing := cluster.Timing()
			if production || s.Topology.Timing == scenario.TimingProduction {
				timing = contract.DefaultTiming()
			}
			return explained(cmd.OutOrStdout(), s, timing)
		},
	}
	cmd.Flags().BoolVar(&production, "production", false, "with the contract's default interval of 30 s, not the second of test backends")
	return cmd
}

func explained(w io.Writer, s *scenario.Scenario, t contract.Timing) error {
	fmt.Fprintf(w, "%s (%s)\n%s\n\n", s.Name, s.Area, s.Title)
	fmt.Fprintf(w, "There are %s with plugins %s, %s; interval %v.\n", text.Count(s.Topology.ControlPlanes, "node"), strings.Join(s.Topology.KeyIDs, " and "),
		text.Count(s.Topology.Aggregators, "aggregator"), t.Interval)
	if k := s.Topology.Kubernetes; len(k) > 0 {
		fmt.Fprintf(w, "The API servers are of Kubernetes %s.\n", strings.Join(k, ", "))
	}
	before := "Before the steps everything is healthy, or the run ends here."
	if s.Topology.Start == scenario.StartStopped {
		before = "Nothing but etcd and the remote KMS runs before the steps."
	}
	fmt.Fprintf(w, "%s After them every fault is released, and everything must get well.\n\n", before)
	if err := statements(w, s); err != nil {
		return err
	}
	for _, e := range s.Excused {
		fmt.Fprintf(w, "A violation of %s is wanted: %s\n\n", e.Invariant, e.Reason)
	}
	return explain.Write(w, explain.Timeline(s, t))
}

func statementIDs() ([]string, error) {
	all, err := scenarios.Statements()
	if err != nil {
		return nil, err
	}
	ids := make([]string, len(all))
	for i, x := range all {
		ids[i] = x.ID
	}
	return ids, nil
}

// statements says what of the sources a scenario exercises.
func statements(w io.Writer, s *scenario.Scenario) error {
	if len(s.Covers) == 0 {
		return nil
	}
	all, err := scenarios.Statements()
	if err != nil {
		return err
	}
	fmt.Fprintln(w, "It exercises these statements of the sources:")
	for _, x := range all {
		if slices.Contains(s.Covers, x.ID) {
			fmt.Fprintf(w, "  %s  %s\n", x.ID, x.Text)
		}
	}
	fmt.Fprintln(w)
	return nil
}
