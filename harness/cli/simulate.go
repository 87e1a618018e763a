package cli

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/backend"
	"github.com/kmsharness/kmsharness/harness/check"
	"github.com/kmsharness/kmsharness/harness/cluster"
	"github.com/kmsharness/kmsharness/harness/cluster/virtual"
	"github.com/kmsharness/kmsharness/harness/outdir"
	"github.com/kmsharness/kmsharness/harness/result"
	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/harness/swarm"
	"github.com/kmsharness/kmsharness/internal/choice"
	"github.com/kmsharness/kmsharness/internal/printer"
	"github.com/kmsharness/kmsharness/internal/program"
)

type simulateFlags struct {
	seeds, shard, out string
	contract          string
	worker            bool
	seed              int64
	jobs              int
	hours             float64
	keep, noShrink    bool
	operator          bool
	publish           string
	interval          time.Duration
	output            *printer.Output
}

func newSimulateCommand() *cobra.Command {
	var f simulateFlags
	cmd := &cobra.Command{
		Use:   "simulate",
		Short: "Draw scenarios from seeds, and simulate them in virtual time",
		Long: `Each seed gives a topology and faults that come and go at random: a few episodes, or hours of them with --hours, from almost
calm to a storm. Then they end, and everything must get well within the contract's bounds. Every invariant is judged all the time.

OUT gets summary.json, and of every seed that did not pass the scenario file, the history, and the shortest timeline that still
fails in the same way. The same seed gives the same history, whatever --jobs and --shard. Exit codes: 0 passed, 1 failed, 2 could
not run.`,
		Example: `  kmsharness simulate --seeds 1-1000
  kmsharness simulate --seeds 1-100 --hours 1
  kmsharness simulate --seed 42
  kmsharness simulate --seeds 1-10000 --shard 3/8 --out shard-3
  kmsharness simulate merge shard-*`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	cmd.Flags().StringVar(&f.seeds, "seeds", "1-100", "A-B, or one seed")
	cmd.Flags().Int64Var(&f.seed, "seed", -1, "one seed; its verdict is printed and its history kept")
	cmd.Flags().Float64Var(&f.hours, "hours", 0, "virtual hours of each seed, of which the last minutes are without faults; 0 is a few episodes")
	cmd.Flags().StringVar(&f.shard, "shard", "", "I/N: simulate only the part with index I, from 0, of N parts of the seeds")
	cmd.Flags().StringVar(&f.out, "out", "_artifacts", "folder for the summary and for what did not pass")
	choice.Add(cmd, &f.contract, "contract", "", scenario.BothContracts, "wire form of the reports: conditions, healthreports, or both: each seed draws its own", forms()...)
	cmd.Flags().IntVar(&f.jobs, "jobs", runtime.NumCPU(), "seeds at the same time")
	cmd.Flags().BoolVar(&f.keep, "keep", false, "keep the histories of seeds that passed, too")
	cmd.Flags().BoolVar(&f.noShrink, "no-shrink", false, "do not look for the shortest timeline of what failed")
	choice.Add(cmd, &f.publish, "publish", "", scenario.PublishApply, "route of reports: ssa or stream", scenario.PublishApply, scenario.PublishStream)
	cmd.Flags().BoolVar(&f.operator, "operator", false, "an operator switches the encryption in every seed, whatever goes wrong meanwhile; a few episodes each")
	f.output = printer.AddFlag(cmd)
	cmd.MarkFlagsMutuallyExclusive("seed", "seeds")
	cmd.MarkFlagsMutuallyExclusive("seed", "shard")
	cmd.MarkFlagsMutuallyExclusive("operator", "hours")
	cmd.Flags().DurationVar(&f.interval, "interval", 0, "of the reporters; default 30s with --hours (production), else 1s (as on the local backend)")
	cmd.Flags().BoolVar(&f.worker, "worker", false, "simulate the seeds that stand in standard input")
	_ = cmd.Flags().MarkHidden("worker") // it exists
	cmd.AddCommand(newMergeCommand(), newShrinkCommand())
	return cmd
}

type simulation struct {
	wanted swarm.Range // of all shards
	swarm.Options
	settings map[string]string
}

func (f *simulateFlags) run(cmd *cobra.Command) error {
	s, err := f.simulation()
	if err != nil {
		return err
	}
	if f.worker {
		return swarm.Serve(cmd.Context(), s.Options, cmd.InOrStdin(), cmd.OutOrStdout())
	}
	unlock, err := outdir.Prepare(cmd.CommandPath(), f.out)
	if err != nil {
		return err
	}
	defer unlock()
	all, err := f.simulate(cmd, s)
	if err := errors.Join(err, all.Save(f.out), f.output.Print(cmd.OutOrStdout(), all, all.Write)); err != nil { // of an interrupted one, what was done
		return err
	}
	if len(all.Failed) > 0 {
		return program.Failed()
	}
	return nil
}

// simulate runs the seeds and shrinks what failed. After an interrupt it returns what was done.
func (f *simulateFlags) simulate(cmd *cobra.Command, s simulation) (*swarm.Summary, error) {
	ctx, w := cmd.Context(), program.Progress(cmd, f.output)
	all := swarm.NewSummary(s.wanted, s.settings)
	var last swarm.Seed
	began := time.Now()
	line := printer.NewProgress(w)
	o := s.Options
	o.Done = func(one swarm.Seed) {
		all.Add(one)
		showSeeds(line, all, s.To-s.From+1, time.Since(began))
		last = one
	}
	if o.Jobs > 1 { // a process has one bubble at a time
		o.Worker = workerOf(cmd)
	}
	err := swarm.Run(ctx, o)
	line.Done()
	all.WallSeconds = time.Since(began).Seconds()
	if err == nil && f.seed >= 0 {
		err = check.Print(w, last.Verdict)
		fmt.Fprintf(w, "\nhistory: %s, sha256:%x\n", filepath.Join(last.Result.Dir, result.HistoryFile), last.Hash)
	}
	if err == nil && !f.noShrink {
		shrinker := newShrinker(f.out, line)
		shrinker.Backends = append(shrinker.Backends, s.Backend)
		err = shrinker.Failed(ctx, all, s.Plan)
		line.Done()
	}
	if err != nil {
		return all, fmt.Errorf("simulate: %w", err)
	}
	return all, nil
}

// workerOf starts this program again, with the same flags, to simulate what is asked of it.
func workerOf(cmd *cobra.Command) func(context.Context) *exec.Cmd {
	args := slices.Concat(strings.Fields(cmd.CommandPath())[1:], []string{"--worker"}, program.Given(cmd.Flags(), "--"))
	return func(ctx context.Context) *exec.Cmd {
		c := exec.CommandContext(ctx, "/proc/self/exe", args...)
		c.Args[0] = os.Args[0]
		return c
	}
}

// newShrinker tries on the backend that kmsharness run has, and shows how short a scenario has become.
func newShrinker(out string, line *printer.Progress) swarm.Shrinker {
	return swarm.Shrinker{Backends: []backend.Backend{virtual.New(virtual.Options{})}, Out: out, Progress: func(name string, runs, steps int) {
		line.Show(fmt.Sprintf("shrinking %s: %d steps after %d runs", name, steps, runs))
	}}
}

// timing of reporters and aggregators. Another interval than production's has jitter and deadlines in the same proportion, but no
// longer ones.
func (f *simulateFlags) timing() (contract.Timing, error) {
	t := contract.DefaultTiming()
	switch {
	case f.interval == 0 && f.hours == 0, f.interval == cluster.Timing().Interval:
		return cluster.Timing(), nil
	case f.interval == 0:
		return t, nil
	}
	t.Interval, t.Jitter = f.interval, f.interval/10
	t.ProbeTimeout, t.WriteTimeout = min(t.ProbeTimeout, f.interval/6), min(t.WriteTimeout, f.interval/3)
	if err := t.Validate(); err != nil || f.interval < time.Second {
		return t, fmt.Errorf("--interval %v: expected at least 1s", f.interval)
	}
	return t, nil
}

func (f *simulateFlags) simulation() (s simulation, err error) {
	if f.seed >= 0 {
		f.seeds = strconv.FormatInt(f.seed, 10)
	}
	if s.wanted, err = swarm.ParseRange(f.seeds); err != nil {
		return s, fmt.Errorf("--seeds %v", err)
	}
	part, err := s.wanted.ParseShard(f.shard)
	if err != nil {
		return s, fmt.Errorf("--shard %v", err)
	}
	if f.jobs < 1 {
		return s, fmt.Errorf("--jobs %d: expected at least 1", f.jobs)
	}
	if f.hours < 0 || f.hours > mostHours || math.IsNaN(f.hours) {
		return s, fmt.Errorf("--hours %v: expected 0 to %d", f.hours, mostHours)
	}
	timing, err := f.timing()
	if err != nil {
		return s, err
	}
	s.Options = swarm.Options{From: part.From, To: part.To, Jobs: int(min(int64(f.jobs), part.To-part.From+1)), Out: f.out,
		Keep: f.keep || f.seed >= 0, Backend: virtual.New(virtual.Options{Timing: timing})}
	s.Plan = swarm.Plan{Length: time.Duration(f.hours * float64(time.Hour)), Timing: s.Backend.Timing(), Operator: f.operator,
		Streams: f.publish == scenario.PublishStream}
	if f.contract != scenario.BothContracts {
		s.Plan.Contract = f.contract
	}
	s.settings = map[string]string{"hours": strconv.FormatFloat(f.hours, 'g', -1, 64), "interval": s.Plan.Timing.Interval.String(), "contract": f.contract, "publish": f.publish}
	return s, nil
}

// mostHours is a month of virtual time.
const mostHours = 31 * 24

func showSeeds(p *printer.Progress, s *swarm.Summary, seeds int64, took time.Duration) {
	virtual := time.Duration(s.VirtualSeconds * float64(time.Second))
	p.Show(fmt.Sprintf("%d of %d seeds, %v of virtual time, %.0f times real time, %d did not pass", s.Seeds, seeds,
		virtual.Round(time.Second), virtual.Seconds()/max(took.Seconds(), 1e-3), len(s.Failed)))
}
