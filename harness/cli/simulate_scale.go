package cli

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/backend/sim"
	"github.com/kmsharness/kmsharness/harness/backend/sim/store"
	"github.com/kmsharness/kmsharness/harness/swarm/scale"
)

// scaleFlags are those of simulate that have to do with size and timing.
type scaleFlags struct {
	nodes    int
	interval time.Duration
}

// mostNodes of one control plane: a bound against typing errors. One object holds no more than two thousand reports.
const mostNodes = 10_000

func (f *scaleFlags) add(cmd *cobra.Command) {
	cmd.Flags().IntVar(&f.nodes, "nodes", 0, "instead of seeds: one control plane of so many nodes for --hours (1 if 0), with a plugin that dies every hour; prints speed and cost")
	cmd.Flags().DurationVar(&f.interval, "interval", 0, "of the reporters; default 30s with --hours or --nodes (production), else 1s (as on the local backend)")
}

// timing of reporters and aggregators. Another interval than production's has jitter and deadlines in the same proportion, but no
// longer ones.
func (f *scaleFlags) timing(hours float64) (contract.Timing, error) {
	t := sim.ProductionTiming()
	switch {
	case f.interval == 0 && hours == 0 && f.nodes == 0, f.interval == sim.LocalTiming().Interval:
		return sim.LocalTiming(), nil
	case f.interval == 0:
		return t, nil
	}
	t.Interval, t.Jitter = f.interval, f.interval/10
	t.ProbeTimeout, t.WriteTimeout = min(t.ProbeTimeout, f.interval/6), min(t.WriteTimeout, f.interval/3)
	if err := t.Validate(); err != nil || f.interval < time.Second {
		return t, usage("--interval %v: expected at least 1s", f.interval)
	}
	return t, nil
}

// run is one control plane at scale.
func (f *scaleFlags) run(cmd *cobra.Command, ssa string, seed int64, hours float64) error {
	if f.nodes < 1 || f.nodes > mostNodes {
		return usage("--nodes %d: expected 1 to %d", f.nodes, mostNodes)
	}
	t, err := f.timing(hours)
	if err != nil {
		return err
	}
	if hours == 0 {
		hours = 1
	}
	o := scale.Options{Nodes: f.nodes, Length: time.Duration(hours * float64(time.Hour)), Seed: seed, Now: time.Now,
		Sim:      sim.Options{SSA: store.SSA(ssa), Timing: t},
		Progress: func(r scale.Result) { _, _ = fmt.Fprintln(cmd.OutOrStdout(), r) }}
	r, err := scale.Run(cmd.Context(), o)
	if err != nil {
		return fmt.Errorf("simulate: %w", err)
	}
	for _, p := range r.Problems {
		_, _ = fmt.Fprintln(cmd.OutOrStdout(), "  ✗", p)
	}
	if !r.OK() {
		return failed()
	}
	return nil
}
