package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/kmsharness/kmsharness/harness/backend"
	"github.com/kmsharness/kmsharness/harness/backend/choose"
	"github.com/kmsharness/kmsharness/harness/engine"
	"github.com/kmsharness/kmsharness/harness/outdir"
	"github.com/kmsharness/kmsharness/harness/report"
	"github.com/kmsharness/kmsharness/harness/result"
	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/harness/scenario/standard"
	"github.com/kmsharness/kmsharness/internal/printer"
	"github.com/kmsharness/kmsharness/internal/program"
)

// closeTimeout bounds stopping the environments at the end, also after Ctrl-C.
const closeTimeout = 20 * time.Second

type runFlags struct {
	common
	extensions   standard.Extensions
	keep         bool
	repeat       int
	failFast     bool
	untilFailure bool
}

func newRunCommand(x standard.Extensions) *cobra.Command {
	f := runFlags{extensions: x}
	f.sut.Faults = x.Faults
	cmd := &cobra.Command{
		Use:   "run FILE|DIR|NAME...",
		Short: "Run scenarios, one after another",
		Long: `Run scenario files, or scenarios of the catalogue by name, and judge each run by every invariant. OUT/<scenario>/ gets history.jsonl, verdict.txt and
the logs of every process, and of a scenario that did not pass artifacts/; OUT/index.html shows all of it, OUT/junit.xml has the results.`,
		Example: `  kmsharness run plugin-hangs
  kmsharness run my-failure.yaml --repeat 10 --out /tmp/flake
  kmsharness run my-failure.yaml --until-failure --keep
  kmsharness run scenarios/catalogue --backend sim --fail-fast`,
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: completeScenarios,
		RunE:              func(cmd *cobra.Command, args []string) error { return f.run(cmd, args) },
	}
	f.register(cmd)
	cmd.Flags().BoolVar(&f.keep, "keep", false, "leave the environment of a scenario that did not pass running, and say how to look inside")
	cmd.Flags().IntVar(&f.repeat, "repeat", 1, "run everything this many times and stop at the first that does not pass")
	cmd.Flags().BoolVar(&f.untilFailure, "until-failure", false, "run everything again and again until a scenario does not pass")
	cmd.Flags().BoolVar(&f.failFast, "fail-fast", false, "stop at the first scenario that does not pass")
	return cmd
}

func (f *runFlags) run(cmd *cobra.Command, paths []string) (err error) {
	if f.repeat < 1 {
		return fmt.Errorf("--repeat %d: expected at least 1", f.repeat)
	}
	if f.untilFailure && f.repeat > 1 {
		return fmt.Errorf("--until-failure and --repeat %d: expected one of them", f.repeat)
	}
	name, _, err := choose.Name(f.backend)
	if err != nil {
		return err
	}
	f.backend = name
	scenarios, err := load(f.extensions, paths)
	if err == nil {
		scenarios, err = f.inForms(scenarios)
	}
	if err != nil {
		return err
	}
	b, err := f.choose(name) // starts nothing, and finds mistakes in the flags
	if err != nil {
		return err
	}
	unlock, err := outdir.Prepare(cmd.CommandPath(), f.out)
	if err != nil {
		return err
	}
	defer unlock()
	sweep := choose.Watch(cmd.Context(), name, f.sut)
	defer func() {
		err = cmp.Or(err, closeBackend(cmd.Context(), b), sweepAfter(cmd.Context(), sweep, program.Lines(program.Progress(cmd, f.output))))
	}()
	began, progress := time.Now(), program.Progress(cmd, f.output)
	if err := engine.Announce(b, scenarios, engine.Execution{Out: f.out, Options: engine.Options{Seed: f.seed}}); err != nil {
		return err
	}
	f.all(cmd.Context(), progress, b, scenarios)
	if err := f.again(cmd.Context(), progress, b, scenarios); err != nil {
		return err
	}
	code, err := conclude(cmd.Context(), cmd.OutOrStdout(), f.output, f.out, b.Name(), began)
	if err == nil {
		err = inspect(cmd.Context(), progress, b, f.out)
	}
	return cmp.Or(err, exit(code))
}

// all stops at a signal, and when repeating, or if asked to, at the first scenario that did not pass: its artifacts must survive.
func (f *runFlags) all(ctx context.Context, w io.Writer, b backend.Backend, scenarios []*scenario.Scenario) {
	for n := 1; n <= f.repeat || f.untilFailure; n++ {
		switch {
		case f.untilFailure:
			fmt.Fprintf(w, "== round %d, until a scenario does not pass\n", n)
		case f.repeat > 1:
			fmt.Fprintf(w, "== round %d of %d\n", n, f.repeat)
		}
		if !f.round(ctx, w, b, scenarios) {
			return
		}
	}
}

// round says whether to go on. A round in which nothing could run would be the same for ever.
func (f *runFlags) round(ctx context.Context, w io.Writer, b backend.Backend, scenarios []*scenario.Scenario) (more bool) {
	for n, s := range scenarios {
		if ctx.Err() != nil {
			return false
		}
		if len(scenarios) > 1 && printer.IsTerminal(w) {
			fmt.Fprintf(w, "== %d of %d\n", n+1, len(scenarios))
		}
		r := f.one(ctx, w, b, s, engine.Execute)
		if r.Unsuitable { // as it would be of every other
			return false
		}
		switch {
		case r.Status == result.NotSupported:
			continue
		case r.Status == result.Passed:
		case f.repeat > 1 || f.untilFailure, f.failFast && r.Status != result.Inconclusive: // the next round would overwrite it
			return false
		}
		more = true
	}
	return more
}

// again judges what is inconclusive once more, alone.
func (f *runFlags) again(ctx context.Context, w io.Writer, b backend.Backend, scenarios []*scenario.Scenario) error {
	names, err := toJudgeAgain(ctx, w, f.out, f.failFast, time.Time{})
	if err != nil || len(names) == 0 {
		return err
	}
	if f.keep {
		fmt.Fprintln(w, "not judged again: --keep left environments running beside it")
		return nil
	}
	for _, s := range scenarios {
		if slices.Contains(names, s.Name) && ctx.Err() == nil {
			f.one(ctx, w, b, s, engine.ExecuteAgain)
		}
	}
	return nil
}

// one runs a scenario, by engine.Execute or engine.ExecuteAgain.
func (f *runFlags) one(ctx context.Context, w io.Writer, b backend.Backend, s *scenario.Scenario,
	execute func(context.Context, backend.Backend, *scenario.Scenario, engine.Execution) result.Result) result.Result {
	fmt.Fprintf(w, "== %s: %s\n", s.Name, s.Title)
	fit := f.sut.Fit(s, b.Name())
	r := execute(ctx, b, fit.Scenario, engine.Execution{
		Options: engine.Options{
			Faults: standard.Faults{Catalogue: f.extensions.Faults}, Seed: f.seed,
			Reproduce: f.reproduce(s), Progress: program.Lines(w), SourceOnly: f.sut.SourceOnly(), BackOff: f.sut.BackOff(), Plugin: f.sut.Plugin.Implementation(), Operator: f.sut.Operator.Implementation(), KeepGoing: f.keepGoing,
		},
		Invariants: f.extensions.Invariants, Unsupported: fit.Unsupported, Notes: fit.Notes, Out: f.out, Keep: f.keep, Artifacts: engine.Artifacts(f.artifacts),
	})
	fmt.Fprintf(w, "== %s: %s\n", s.Name, r.StatusText())
	return r
}

func (c *common) reproduce(s *scenario.Scenario) string {
	parts := append([]string{"kmsharness run", s.File, "--backend " + c.backend, fmt.Sprintf("--seed %d", c.seed)}, s.FormFlags()...)
	return strings.Join(append(parts, c.judgedAlike()...), " ")
}

func closeBackend(ctx context.Context, b backend.Backend) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	return b.Close(ctx)
}

// toJudgeAgain are the scenarios that are inconclusive, by name. There are none where no scenario may be begun any more: after an interrupt, after
// notAfter (zero: no limit), and after a failure with --fail-fast.
func toJudgeAgain(ctx context.Context, w io.Writer, out string, failFast bool, notAfter time.Time) (names []string, err error) {
	summary, err := report.Collect(out)
	if err != nil {
		return nil, err
	}
	if ctx.Err() != nil || !notAfter.IsZero() && time.Now().After(notAfter) || failFast && summary.Count(result.Failed)+summary.Count(result.CouldNotRun) > 0 {
		return nil, nil
	}
	for _, r := range summary.Results {
		if r.Status == result.Inconclusive {
			names = append(names, r.Scenario)
		}
	}
	if len(names) > 0 {
		fmt.Fprintf(w, "inconclusive, and judged once more, alone: %s\n", strings.Join(names, ", "))
	}
	return names, nil
}

// labelsOf is the label filter that picks scenarios by name.
func labelsOf(names []string) string {
	return "name:" + strings.Join(names, " || name:")
}

// inspect says how to look into the environments that --keep left running, and keeps them until Ctrl-C: they are
// children of this process and end with it.
func inspect(ctx context.Context, w io.Writer, b choose.Backend, out string) error {
	kept := b.Kept()
	if len(kept) == 0 {
		return nil
	}
	for _, env := range kept {
		d, err := env.Describe()
		if err != nil {
			return err
		}
		s := upState{Description: d, History: out + "/*/history.jsonl", End: "Ctrl-C"}
		if err := s.print(w); err != nil {
			return err
		}
	}
	fmt.Fprintln(w, "\nkept running until Ctrl-C")
	<-ctx.Done()
	return nil
}
