package cli

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/backend"
	"github.com/kmsharness/kmsharness/harness/backend/sim"
	"github.com/kmsharness/kmsharness/harness/backend/sim/store"
	"github.com/kmsharness/kmsharness/harness/cluster/virtual"
	"github.com/kmsharness/kmsharness/harness/swarm"
)

func newShrinkCommand() *cobra.Command {
	var out, on string
	var seed int64
	var runs int
	cmd := &cobra.Command{
		Use:   "shrink FILE|NAME",
		Short: "Make a scenario that fails in a simulation as short as it can be",
		Long: `Simulate the scenario again and again, each time without some of its steps, with shorter waits or fewer nodes, and write the shortest
one that still violates the same invariant: OUT/NAME-min.yaml.`,
		Example: `  kmsharness simulate shrink swarm-42.yaml --seed 42 --out /tmp/short`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkSimulator(on); err != nil {
				return err
			}
			s, err := findScenario(args[0])
			if err != nil {
				return err
			}
			unlock, err := prepareOut(cmd, out)
			if err != nil {
				return err
			}
			defer unlock()
			line := newProgress(cmd.OutOrStdout(), isTerminal(cmd.OutOrStdout()), time.Now)
			if !cmd.Flags().Changed("runs") {
				runs = shrinkRuns(on)
			}
			shrinker := swarm.Shrinker{Backends: []backend.Backend{simulator(on, string(store.Model), contract.Timing{}, sim.UnhealthyExtends)}, Runs: runs, Out: out, Progress: line.shrinking}
			short, ok, err := shrinker.Shrink(cmd.Context(), s, seed)
			line.done()
			switch {
			case err != nil:
				return err
			case !ok:
				return usage("%s: passes with seed %d, expected a scenario that fails", args[0], seed)
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s: %d steps after %d runs, fails with: %s\n", short.File, short.Steps, short.Runs, short.Fails)
			return err
		},
	}
	cmd.Flags().StringVar(&out, "out", "_artifacts", "folder for the short scenario")
	cmd.Flags().Int64Var(&seed, "seed", 1, "seed that it fails with")
	cmd.Flags().IntVar(&runs, "runs", swarm.DefaultShrinkRuns, "simulations at most")
	backendFlag(cmd, &on)
	return cmd
}

func backendFlag(cmd *cobra.Command, name *string) {
	cmd.Flags().StringVar(name, "backend", sim.Name, "backend that simulates")
	_ = cmd.Flags().MarkHidden("backend") // it exists
}

func checkSimulator(name string) error {
	if name != sim.Name && name != virtual.Name {
		return usage("--backend %q: expected %s or %s", name, sim.Name, virtual.Name)
	}
	return nil
}

// shrinkRuns is how many simulations shrinking takes at most where nobody says: some minutes on a backend that runs programs.
func shrinkRuns(name string) int {
	if name == sim.Name {
		return swarm.DefaultShrinkRuns
	}
	return swarm.DefaultShrinkRuns / 5
}
