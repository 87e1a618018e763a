package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/utils/clock"

	"github.com/kmsharness/kmsharness/harness/backend"
	"github.com/kmsharness/kmsharness/harness/cluster/virtual"
	"github.com/kmsharness/kmsharness/harness/engine"
	"github.com/kmsharness/kmsharness/harness/outdir"
	"github.com/kmsharness/kmsharness/harness/result"
	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/harness/scenario/standard"
)

// watchEvery is how often a file is looked at: sooner than a person changes windows.
const watchEvery = 200 * time.Millisecond

func newScenarioWatchCommand(x standard.Extensions) *cobra.Command {
	var out string
	cmd := &cobra.Command{
		Use:     "watch FILE",
		Short:   "Simulate a scenario again whenever its file is saved, until Ctrl-C",
		Example: "  kmsharness scenario watch my-failure.yaml",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if _, err := os.Stat(args[0]); err != nil {
				return fmt.Errorf("watch a scenario: %w", err)
			}
			unlock, err := outdir.Prepare(cmd.CommandPath(), out)
			if err != nil {
				return err
			}
			defer unlock()
			w := watching{extensions: x, file: args[0], out: out, to: cmd.OutOrStdout(), backend: virtual.New(virtual.Options{}), clock: clock.RealClock{}}
			return w.run(cmd.Context())
		},
	}
	cmd.Flags().StringVar(&out, "out", "_artifacts", "folder for verdict and history of the last run")
	return cmd
}

type watching struct {
	extensions standard.Extensions
	file, out  string
	to         io.Writer
	backend    backend.Backend
	clock      clock.WithTicker
}

func (w watching) run(ctx context.Context) error {
	ticker := w.clock.NewTicker(watchEvery)
	defer ticker.Stop()
	var last os.FileInfo
	for {
		// Editors replace a file, so that for a moment there is none.
		if now, err := os.Stat(w.file); err == nil && (last == nil || changed(last, now)) {
			last = now
			w.once(ctx)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
		}
	}
}

func changed(a, b os.FileInfo) bool {
	return !a.ModTime().Equal(b.ModTime()) || a.Size() != b.Size() || !os.SameFile(a, b)
}

func (w watching) once(ctx context.Context) {
	began := w.clock.Now()
	all, err := load(w.extensions, []string{w.file})
	if err != nil {
		fmt.Fprintln(w.to, err)
		return
	}
	for _, s := range all {
		r := w.simulate(ctx, s)
		fmt.Fprintln(w.to, r.Text())
	}
	fmt.Fprintf(w.to, "-- %s, %v; waiting for the next change\n", w.file, w.clock.Since(began).Round(time.Millisecond))
}

func (w watching) simulate(ctx context.Context, s *scenario.Scenario) result.Result {
	return engine.Execute(ctx, w.backend, s, engine.Execution{Out: w.out, Invariants: w.extensions.Invariants, Options: engine.Options{
		Faults: standard.Faults{Catalogue: w.extensions.Faults}, Seed: 1, Reproduce: "kmsharness run " + s.File + " --backend sim"}})
}
