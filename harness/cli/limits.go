package cli

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/backend/sim"
	"github.com/kmsharness/kmsharness/harness/backend/sim/store"
)

type limitsFlags struct {
	servers  []int
	cpus     int
	interval time.Duration
}

func newLimitsCommand() *cobra.Command {
	var f limitsFlags
	cmd := &cobra.Command{
		Use:   "limits",
		Short: "Print how many nodes can report to one object",
		Long: `An API server that applies to an object which somebody else has changed meanwhile begins anew, until the deadline. So nodes that
write one object at the same time keep each other from it. Printed is the most nodes of which no write fails in ten intervals, with
the contract's jitter and without, and how many fit into the object. Each apply costs what it costs a real API server
(docs/model.md).`,
		Example: `  kmsharness simulate limits
  kmsharness simulate limits --servers 3 --cpus 4`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	cmd.Flags().IntSliceVar(&f.servers, "servers", []int{1, 3}, "API servers that the nodes write through")
	cmd.Flags().IntVar(&f.cpus, "cpus", 2, "processors of each API server")
	cmd.Flags().DurationVar(&f.interval, "interval", contract.DefaultTiming().Interval, "between two writes of a node; jitter is a tenth of it")
	return cmd
}

func (f *limitsFlags) run(cmd *cobra.Command) error {
	timing := contract.DefaultTiming()
	timing.Interval, timing.Jitter = f.interval, f.interval/10
	timing.ProbeTimeout, timing.WriteTimeout = min(timing.ProbeTimeout, f.interval), min(timing.WriteTimeout, f.interval)
	if f.interval < time.Second || f.interval > time.Hour {
		return usage("--interval %v: expected 1s to 1h", f.interval)
	}
	if f.cpus < 1 || f.cpus > 256 {
		return usage("--cpus %d: expected 1 to 256", f.cpus)
	}
	out := cmd.OutOrStdout()
	fmt.Fprintf(out, "one object, interval %v, write deadline %v, %d processors for each API server\n\n", timing.Interval, timing.WriteTimeout, f.cpus)
	t := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "API SERVERS\tJITTER\tNODES BEGIN\tMOST NODES\tWRITES THAT FAIL WITH ONE MORE")
	b := sim.New(sim.Options{SSA: store.Model, CPUs: f.cpus})
	for _, servers := range f.servers {
		if servers < 1 || servers > 100 {
			return usage("--servers %d: expected 1 to 100", servers)
		}
		for _, jitter := range []time.Duration{0, timing.Jitter} {
			timing := timing
			timing.Jitter = jitter
			l, err := b.Limit(cmd.Context(), servers, timing)
			if err != nil {
				return fmt.Errorf("limits: %w", err)
			}
			fmt.Fprintf(t, "%d\t%v\t%s\t%d\t%s\n", servers, jitter, l.Start, l.Nodes, l.Failed)
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	return sizeLimits(cmd.Context(), out, b)
}

// sizeLimits prints how many nodes fit.
func sizeLimits(ctx context.Context, out io.Writer, b *sim.Backend) error {
	t := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "\nREPORTS\tMOST NODES THAT FIT\tONE MORE GETS")
	for _, c := range []struct {
		name    string
		plugins int
		detail  string
	}{{"one healthy plugin", 1, ""}, {"two healthy plugins", 2, ""}, {"two plugins with the longest detail", 2, sim.LongestDetail()}} {
		nodes, refusal, err := b.SizeLimit(ctx, c.plugins, c.detail)
		if err != nil {
			return fmt.Errorf("limits: %w", err)
		}
		fmt.Fprintf(t, "%s\t%d\t%v\n", c.name, nodes, refusal)
	}
	return t.Flush()
}
