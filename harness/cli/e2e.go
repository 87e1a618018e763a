package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/kmsharness/kmsharness/harness/assets"
	"github.com/kmsharness/kmsharness/harness/backend/choose"
	"github.com/kmsharness/kmsharness/harness/backend/local"
	"github.com/kmsharness/kmsharness/harness/outdir"
	"github.com/kmsharness/kmsharness/harness/report/render"
	"github.com/kmsharness/kmsharness/harness/result"
	"github.com/kmsharness/kmsharness/internal/printer"
	"github.com/kmsharness/kmsharness/internal/program"
	"github.com/kmsharness/kmsharness/scenarios"
)

// interruptGrace is how long the suite may take to stop its environments after Ctrl-C before it is killed. The environments' processes die with
// the suite in any case.
const interruptGrace = 3 * time.Second

// sweepTimeout bounds the deletion of clusters, a second each.
const sweepTimeout = time.Minute

type e2eFlags struct {
	common
	labels   string
	procs    int
	failFast bool
	time     time.Duration
}

func newE2ECommand() *cobra.Command {
	var f e2eFlags
	cmd := &cobra.Command{
		Use:   "e2e",
		Short: "Run the whole catalogue, or the part of it that a label filter picks",
		Long: `Run every scenario of the catalogue as a Ginkgo spec, several side by side, and print one verdict. What CPU starvation makes inconclusive
is judged once more at the end, alone.
The suite (scenarios.test) and its runner (ginkgo) are looked for beside this program; make build puts them there.`,
		Example: `  kmsharness e2e
  kmsharness e2e --labels 'area:plugin && !slow' --procs 1
  kmsharness e2e --system my-reporter.yaml`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	f.register(cmd)
	cmd.Flags().StringVar(&f.labels, "labels", "", "Ginkgo label filter: area:…, topology:…, fault:…, slow, nodes; all: everything (default: on kind only-kind without slow, and kind; on local all but slow, and local; on sim all)")
	_ = cmd.RegisterFlagCompletionFunc("labels", completeLabels) // it exists
	cmd.Flags().BoolVar(&f.failFast, "fail-fast", false, "begin no further scenario after the first that does not pass")
	cmd.Flags().DurationVar(&f.time, "time", 0, "begin no further scenario after this long, and say which were not begun; 0: no limit")
	cmd.Flags().IntVar(&f.procs, "procs", 0, "scenarios side by side, each on a control plane of its own (1 to 16); on kind, clusters (default: 2 on sim; 3 on local; on kind one for each two processors, 1 or 2)")
	return cmd
}

// run finds every mistake in the flags before it makes the output folder, and sweeps whatever the suite did, since its clusters outlive it.
func (f *e2eFlags) run(cmd *cobra.Command) error {
	name, why, err := choose.Name(f.backend)
	if err != nil {
		return err
	}
	all, err := scenarios.Load()
	if err == nil {
		all, err = f.inForms(all)
	}
	if err != nil {
		return err
	}
	if !cmd.Flags().Changed("procs") {
		f.procs = choose.Processes(name)
	}
	if f.procs < 1 || f.procs > 16 {
		return fmt.Errorf("--procs %d: expected 1 to 16", f.procs)
	}
	if f.time < 0 {
		return fmt.Errorf("--time %v: expected a duration above 0, for example 20m", f.time)
	}
	if _, err := f.choose(name); err != nil { // before every process of the suite finds the mistake
		return err
	}
	out := program.Progress(cmd, f.output)
	fmt.Fprintf(out, "e2e: backend %s (%s), wire form of the reports: %s\n", name, why, f.contract)
	f.backend = name
	var notice string
	if f.labels, notice = choose.Part(name, f.labels); notice != "" {
		fmt.Fprintf(out, "e2e: %s\n", notice)
	}
	selected, err := checkLabels(f.labels, all)
	if err != nil {
		return err
	}
	if err := choose.SideBySide(name); err != nil && f.procs > 1 {
		fmt.Fprintln(out, "e2e: one cluster at a time:", err)
		f.procs = 1
	}
	suite, runner, err := suitePrograms()
	if err != nil {
		return err
	}
	unlock, err := outdir.Prepare(cmd.CommandPath(), f.out)
	if err != nil {
		return err
	}
	defer unlock()
	if err := ensurePrograms(cmd.Context(), out, name); err != nil {
		return err
	}
	sweep := choose.Watch(cmd.Context(), name, f.sut)
	began := time.Now()
	s := suiteRun{runner: runner, suite: suite, scenarios: selected}
	if f.time > 0 {
		s.notAfter = began.Add(f.time)
	}
	suiteErr := f.runSuite(cmd, s)
	names, err := toJudgeAgain(cmd.Context(), out, f.out, f.failFast, s.notAfter)
	if err == nil && len(names) > 0 {
		f.labels, f.procs, s.scenarios, s.again = labelsOf(names), 1, len(names), "-again"
		suiteErr = cmp.Or(suiteErr, f.runSuite(cmd, s))
	}
	if suiteErr != nil {
		fmt.Fprintf(out, "suite: %v\n", suiteErr)
	}
	if err := cmp.Or(err, sweepAfter(cmd.Context(), sweep, program.Lines(out))); err != nil {
		return err
	}
	code, err := conclude(cmd.Context(), cmd.OutOrStdout(), f.output, f.out, name, began)
	if err != nil {
		return err
	}
	return e2eVerdict(code, suiteErr)
}

// ensurePrograms finds, downloads or builds them once, with progress, before several processes look for them at the same time.
func ensurePrograms(ctx context.Context, w io.Writer, backend string) error {
	if backend != local.Name {
		return nil
	}
	if _, err := assets.Ensure(ctx, assets.Options{Progress: program.Lines(w)}); err != nil {
		return fmt.Errorf("control-plane binaries: %w", err)
	}
	return nil
}

// sweepAfter also works after Ctrl-C, which is when it is needed.
func sweepAfter(ctx context.Context, sweep func(context.Context, func(string)) error, progress func(string)) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sweepTimeout)
	defer cancel()
	if err := sweep(ctx, progress); err != nil {
		return fmt.Errorf("clean up: %w", err)
	}
	return nil
}

// conclude makes one set of results of what all processes left in dir, writes every output from it, and prints it. A page that cannot be written
// changes no verdict. After an interrupt it is a failure only if something had failed before.
func conclude(ctx context.Context, w io.Writer, output *printer.Output, dir, backend string, began time.Time) (code int, err error) {
	known, err := statementIDs()
	if err != nil {
		return program.ExitCouldNotRun, err
	}
	written, pageErr := render.Write(render.Options{Dirs: []string{dir}, Out: dir, Took: time.Since(began), Statements: known})
	summary := written.Summary
	summary.Backend, summary.Took = backend, time.Since(began)
	if err := summary.SaveJUnit(dir); err != nil {
		return program.ExitCouldNotRun, err
	}
	if code = summary.ExitCode(); ctx.Err() != nil && summary.Count(result.Failed) == 0 {
		code = program.ExitCouldNotRun
	}
	if pageErr != nil && output.Structured() {
		return program.ExitCouldNotRun, pageErr
	}
	return code, output.Print(w, written.Machine, func(w io.Writer) error {
		fmt.Fprintf(w, "\n%s\n\n", written.Coverage)
		if err := summary.WriteText(w); err != nil {
			return err
		}
		if ctx.Err() != nil {
			fmt.Fprintln(w, "interrupted: what had not ended is not judged")
		}
		if pageErr != nil {
			fmt.Fprintf(w, "report: could not be written: %v\n", pageErr)
			return nil
		}
		fmt.Fprintf(w, "report: %s\n", written.Page)
		return nil
	})
}

// e2eVerdict: the results decide; a suite that failed although every result passed has a defect of its own.
func e2eVerdict(code int, suiteErr error) error {
	if code == program.ExitPassed && suiteErr != nil {
		return fmt.Errorf("the suite failed although every scenario that was judged passed: %v", suiteErr)
	}
	return exit(code)
}

// suitePrograms finds the suite and its runner beside this program.
func suitePrograms() (suite, runner string, err error) {
	self, err := os.Executable()
	if err != nil {
		return "", "", fmt.Errorf("find this program's folder: %w", err)
	}
	dir := filepath.Dir(self)
	suite, runner = filepath.Join(dir, "scenarios.test"), filepath.Join(dir, "ginkgo")
	for _, path := range []string{suite, runner} {
		if _, err := os.Stat(path); err != nil {
			return "", "", fmt.Errorf("%s is missing beside kmsharness: run make build", filepath.Base(path))
		}
	}
	return suite, runner, nil
}

func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}
