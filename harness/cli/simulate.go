package cli

import (
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/kmsharness/kmsharness/harness/backend/sim"
	"github.com/kmsharness/kmsharness/harness/backend/sim/store"
	"github.com/kmsharness/kmsharness/harness/report"
	"github.com/kmsharness/kmsharness/harness/swarm"
)

type simulateFlags struct {
	seeds, out, ssa string
	jobs            int
	keep            bool
	hours           float64
	scale           scaleFlags
}

func newSimulateCommand() *cobra.Command {
	var f simulateFlags
	cmd := &cobra.Command{
		Use:   "simulate",
		Short: "Draw scenarios from seeds, and simulate them in virtual time",
		Long: `Each seed gives a topology and faults that come and go at random. When they are over everything must get well, and every
invariant is judged all the time. OUT gets the scenario file and the history of every seed that did not pass; the same seed gives
the same history, whatever --jobs.`,
		Example: `  kmsharness simulate --seeds 1-1000
  kmsharness simulate --seeds 42 --keep`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	cmd.Flags().StringVar(&f.seeds, "seeds", "1-100", "A-B, or one seed")
	cmd.Flags().StringVar(&f.out, "out", "_artifacts", "folder for what did not pass")
	cmd.Flags().StringVar(&f.ssa, "ssa", string(store.Model), "what merges applies: real (Kubernetes' own code) or model (the same result, sooner)")
	cmd.Flags().IntVar(&f.jobs, "jobs", runtime.NumCPU(), "seeds at the same time")
	cmd.Flags().BoolVar(&f.keep, "keep", false, "keep the histories of seeds that passed, too")
	cmd.Flags().Float64Var(&f.hours, "hours", 0, "virtual hours with --nodes")
	f.scale.add(cmd)
	return cmd
}

func (f *simulateFlags) run(cmd *cobra.Command) error {
	from, to, err := seedRange(f.seeds)
	if err != nil {
		return err
	}
	if f.ssa != string(store.Real) && f.ssa != string(store.Model) {
		return usage("--ssa %q: expected real or model", f.ssa)
	}
	spareCollector()
	if cmd.Flags().Changed("nodes") {
		return f.scale.run(cmd, f.ssa, from, f.hours)
	}
	timing, err := f.scale.timing(0)
	if err != nil {
		return err
	}
	if f.jobs < 1 {
		return usage("--jobs %d: expected at least 1", f.jobs)
	}
	if err := prepareOut(f.out); err != nil {
		return err
	}
	out, began := cmd.OutOrStdout(), time.Now()
	var all swarm.Summary
	err = swarm.Run(cmd.Context(), swarm.Options{From: from, To: to, Jobs: f.jobs, Out: f.out, Keep: f.keep,
		Backend: sim.New(sim.Options{SSA: store.SSA(f.ssa), Timing: timing}), Done: func(s swarm.Seed) {
			all.Add(s)
			if s.Result.Status != report.Passed {
				fmt.Fprintf(out, "seed %d: %s\n", s.Seed, s.Result.Status)
			}
		}})
	if err != nil {
		return fmt.Errorf("simulate: %w", err)
	}
	if err := all.Write(out, time.Since(began)); err != nil {
		return err
	}
	if len(all.Failed) > 0 {
		return failed()
	}
	return nil
}

// seedRange reads A-B, or one seed.
func seedRange(text string) (from, to int64, err error) {
	first, last, isRange := strings.Cut(text, "-")
	if !isRange {
		last = first
	}
	from, errFrom := strconv.ParseInt(first, 10, 63)
	to, errTo := strconv.ParseInt(last, 10, 63)
	if errFrom != nil || errTo != nil || from < 0 || to < from {
		return 0, 0, usage("--seeds %q: expected a seed, or A-B with A not above B", text)
	}
	return from, to, nil
}
