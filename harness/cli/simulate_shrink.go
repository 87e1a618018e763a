package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/kmsharness/kmsharness/harness/outdir"
	"github.com/kmsharness/kmsharness/harness/scenario/standard"
	"github.com/kmsharness/kmsharness/harness/swarm"
	"github.com/kmsharness/kmsharness/internal/printer"
)

func newShrinkCommand() *cobra.Command {
	var out string
	var seed int64
	var runs int
	cmd := &cobra.Command{
		Use:   "shrink FILE|NAME",
		Short: "Make a scenario that fails in a simulation as short as it can be",
		Long: `Simulate the scenario again and again, each time without some of its steps, with shorter waits or fewer nodes, and write the shortest
one that still violates the same invariant: OUT/NAME-min.yaml.`,
		Example:           `  kmsharness simulate shrink swarm-42.yaml --seed 42 --out /tmp/short`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeScenarios,
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := findScenario(standard.Extensions{}, args[0])
			if err != nil {
				return err
			}
			unlock, err := outdir.Prepare(cmd.CommandPath(), out)
			if err != nil {
				return err
			}
			defer unlock()
			line := printer.NewProgress(cmd.OutOrStdout())
			shrinker := newShrinker(out, line)
			shrinker.Runs = runs
			short, ok, err := shrinker.Shrink(cmd.Context(), s, seed)
			line.Done()
			switch {
			case err != nil:
				return err
			case !ok:
				return fmt.Errorf("%s: passes with seed %d, expected a scenario that fails", args[0], seed)
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s: %d steps after %d runs, fails with: %s\n", short.File, short.Steps, short.Runs, short.Fails)
			return err
		},
	}
	cmd.Flags().StringVar(&out, "out", "_artifacts", "folder for the short scenario")
	cmd.Flags().Int64Var(&seed, "seed", 1, "seed that it fails with")
	cmd.Flags().IntVar(&runs, "runs", swarm.DefaultShrinkRuns, "simulations at most")
	return cmd
}
