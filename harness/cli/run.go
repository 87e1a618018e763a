package cli

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/utils/clock"

	"github.com/kmsharness/kmsharness/harness/backend"
	"github.com/kmsharness/kmsharness/harness/backend/choose"
	"github.com/kmsharness/kmsharness/harness/engine"
	"github.com/kmsharness/kmsharness/harness/report"
	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/harness/scenario/standard"
)

// closeTimeout bounds stopping the environments at the end, also after Ctrl-C.
const closeTimeout = 20 * time.Second

type runFlags struct {
	common
	keep   bool
	repeat int
}

func newRunCommand() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "run FILE|DIR...",
		Short: "Run scenarios, one after another",
		Long: `Run scenario files and judge each run by every invariant. OUT/<scenario>/ gets history.jsonl, verdict.txt and
the logs of every process, and of a scenario that did not pass artifacts/; OUT/junit.xml the results of all.`,
		Example: `  kmsharness run scenarios/catalogue/plugin-hangs.yaml
  kmsharness run my-failure.yaml --repeat 10 --out /tmp/flake
  kmsharness run scenarios/catalogue/node-removed.yaml --keep`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, args) },
	}
	f.register(cmd)
	cmd.Flags().BoolVar(&f.keep, "keep", false, "leave the environment of a scenario that did not pass running, and say how to look inside")
	cmd.Flags().IntVar(&f.repeat, "repeat", 1, "run everything this many times and stop at the first that does not pass")
	return cmd
}

func (f *runFlags) run(cmd *cobra.Command, paths []string) (err error) {
	if f.repeat < 1 {
		return usage("--repeat %d: expected at least 1", f.repeat)
	}
	if _, err := f.collect(); err != nil {
		return err
	}
	scenarios, err := load(paths)
	if err != nil {
		return err
	}
	name, _, err := choose.Name(f.backend)
	if err != nil {
		return err
	}
	f.backend = name
	b, err := choose.New(name, f.sut) // starts nothing, and finds mistakes in the flags
	if err != nil {
		return err
	}
	if err := prepareOut(f.out); err != nil {
		return err
	}
	sweep := choose.Watch(cmd.Context(), name)
	defer func() {
		err = firstError(err, closeBackend(cmd.Context(), b), sweepAfter(cmd.Context(), sweep, printer(cmd.OutOrStdout())))
	}()
	began := time.Now()
	f.all(cmd.Context(), cmd.OutOrStdout(), b, scenarios)
	code, err := conclude(cmd.Context(), cmd.OutOrStdout(), f.out, b.Name(), began)
	if err == nil {
		err = lookInside(cmd.Context(), cmd.OutOrStdout(), b, f.out)
	}
	if err == nil && code != ExitPassed {
		err = &exitError{code: code}
	}
	return err
}

// all stops at a signal, and when repeating at the first scenario that did not pass: its artifacts must survive.
func (f *runFlags) all(ctx context.Context, w io.Writer, b backend.Backend, scenarios []*scenario.Scenario) {
	for n := range f.repeat {
		if f.repeat > 1 {
			fmt.Fprintf(w, "== round %d of %d\n", n+1, f.repeat)
		}
		for _, s := range scenarios {
			if ctx.Err() != nil {
				return
			}
			r := f.one(ctx, w, b, s)
			if f.repeat > 1 && r.Status != report.Passed && r.Status != report.NotSupported {
				return
			}
		}
	}
}

func (f *runFlags) one(ctx context.Context, w io.Writer, b backend.Backend, s *scenario.Scenario) report.Result {
	fmt.Fprintf(w, "== %s: %s\n", s.Name, s.Title)
	r := engine.Execute(ctx, b, s, engine.Execution{
		Options: engine.Options{
			Runtime: engine.RealTime(clock.RealClock{}), Faults: standard.Faults{}, Seed: f.seed,
			Reproduce: f.reproduce(s.File), Progress: printer(w),
		},
		Out: f.out, Keep: f.keep, Artifacts: engine.Artifacts(f.artifacts),
	})
	fmt.Fprintf(w, "== %s: %s\n", s.Name, r.Status)
	return r
}

// reproduce is the command that runs a file again under the same flags.
func (c *common) reproduce(file string) string {
	parts := append([]string{"kmsharness run", file, "--backend " + c.backend, fmt.Sprintf("--seed %d", c.seed)}, c.sut.Flags()...)
	return strings.Join(parts, " ")
}

// load parses files and folders; every mistake of every file is in the error, one line each.
func load(paths []string) ([]*scenario.Scenario, error) {
	parser, err := standard.Parser()
	if err != nil {
		return nil, err
	}
	for i, p := range paths {
		paths[i] = filepath.Clean(p)
	}
	return parser.Load(paths...)
}

func closeBackend(ctx context.Context, b backend.Backend) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	return b.Close(ctx)
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
