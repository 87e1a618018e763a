package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kmsharness/kmsharness/aggregator/core"
	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/check"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/observe"
	"github.com/kmsharness/kmsharness/harness/outdir"
	"github.com/kmsharness/kmsharness/harness/report/render"
	"github.com/kmsharness/kmsharness/harness/report/timeline"
	"github.com/kmsharness/kmsharness/harness/result"
	"github.com/kmsharness/kmsharness/harness/starvation"
	"github.com/kmsharness/kmsharness/internal/atomicfile"
	"github.com/kmsharness/kmsharness/internal/choice"
	"github.com/kmsharness/kmsharness/internal/printer"
	"github.com/kmsharness/kmsharness/internal/program"
)

type observeFlags struct {
	kubeconfig, out, operator, lease string
	lasts                            time.Duration
	strict                           bool
	options                          observe.Options
	output                           *printer.Output
}

// intervalsFile has a name by which the viewers of OpenShift's jobs find timelines.
const intervalsFile = "e2e-timelines_spyglass_kms-health.json"

// heapLimit, in bytes, is what garbage is collected for: with the program's own pages some 100 MB. An hour of a hundred nodes may need more, and gets it.
const heapLimit = 40 << 20

func newObserveCommand() *cobra.Command {
	f := observeFlags{options: observe.Options{NodeSelector: "node-role.kubernetes.io/control-plane", Run: history.Run{Scenario: "observe", Backend: "cluster", Timing: contract.DefaultTiming()}}}
	cmd := &cobra.Command{
		Use:   "observe",
		Short: "Judge a running cluster, and change nothing",
		Long: `Watch the health reports and rollups of a cluster until Ctrl-C, or for some time, and judge them by the invariants that such observations allow;
of the others the verdict says why they are not judged. It only reads: ci/manifests/observe-job.yaml has the rights that it needs, and runs it in the cluster.
The clocks of this machine and of the nodes must agree within the tolerance. Exit codes: 0 passed, 1 failed, 2 no verdict.`,
		Example: `  kmsharness observe --kubeconfig admin.kubeconfig --for 1h
  kmsharness observe --aggregator-profile convergence --contract healthreports`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	flags, run := cmd.Flags(), &f.options.Run
	flags.StringVar(&f.kubeconfig, "kubeconfig", os.Getenv(clientcmd.RecommendedConfigPathEnvVar), "kubeconfig of the cluster (default KUBECONFIG, or that of the pod)")
	flags.DurationVar(&f.lasts, "for", 0, "how long; 0: until it is interrupted")
	flags.StringVar(&f.out, "out", "_artifacts/observe", "folder for the history, the page and junit.xml")
	t := &run.Timing
	flags.DurationVar(&t.Interval, "interval", t.Interval, "of the reporters, as the three flags that follow")
	flags.DurationVar(&t.Jitter, "jitter", t.Jitter, "most by which a tick is moved")
	flags.DurationVar(&t.ProbeTimeout, "read-timeout", t.ProbeTimeout, "timeout of a Status call")
	flags.DurationVar(&t.WriteTimeout, "write-timeout", t.WriteTimeout, "timeout of a write")
	flags.DurationVar(&run.Tolerance, "tolerance", time.Second, "added to every bound: what networks and clocks take")
	flags.StringVar(&f.options.NodeSelector, "node-selector", f.options.NodeSelector, "label selector of the nodes that should report")
	flags.StringVar(&f.lease, "aggregator-lease", "", "NAMESPACE/NAME of the aggregator's lease, which shows when another one leads")
	flags.BoolVar(&f.strict, "strict", false, strictUsage)
	var operators []string
	for _, o := range core.Operators() {
		operators = append(operators, o.Name)
	}
	choice.Add(cmd, &f.operator, "operator", "", operators[0], "operator whose reports are observed", operators...)
	choice.Add(cmd, &run.Contract, "contract", "", history.FormConditions, "wire form of the reports", history.FormConditions, history.FormHealthReports)
	choice.Add(cmd, &run.AggregatorProfile, "aggregator-profile", "", "", "what the aggregator promises: rollups or convergence (default rollups)", contract.AggregatorRollups, contract.AggregatorConvergence)
	f.output = printer.AddFlag(cmd)
	return cmd
}

// complete checks the flags, and makes options of them.
func (f *observeFlags) complete() (err error) {
	o := &f.options
	o.Run.SourceOnly = !f.strict
	if o.Operator, err = core.OperatorByName(f.operator); err != nil {
		return err
	}
	if err := o.Run.Timing.Validate(); err != nil {
		return errors.New(strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	if f.lease != "" {
		var ok bool
		if o.LeaseNamespace, o.LeaseName, ok = strings.Cut(f.lease, "/"); !ok {
			return fmt.Errorf("--aggregator-lease %q: expected NAMESPACE/NAME", f.lease)
		}
	}
	if o.REST, err = clientcmd.BuildConfigFromFlags("", f.kubeconfig); err != nil {
		return fmt.Errorf("--kubeconfig: %w", err)
	}
	return nil
}

func (f *observeFlags) run(cmd *cobra.Command) error {
	if err := f.complete(); err != nil {
		return err
	}
	unlock, err := outdir.Prepare(cmd.CommandPath(), f.out)
	if err != nil {
		return err
	}
	defer unlock()
	if os.Getenv("GOMEMLIMIT") == "" {
		defer debug.SetMemoryLimit(debug.SetMemoryLimit(heapLimit))
	}
	words := program.Progress(cmd, f.output)
	f.options.Progress = program.Lines(words)
	ctx, cancel := cmd.Context(), func() {}
	if f.lasts > 0 {
		ctx, cancel = context.WithTimeout(ctx, f.lasts)
	}
	defer cancel()
	events, err := f.record(ctx)
	if err != nil {
		return err
	}
	verdict := check.Run(events)
	show := func(w io.Writer) error { return check.Print(io.MultiWriter(w, words), verdict) }
	intervals := func(w io.Writer) error {
		return timeline.Write(w, timeline.Of(events, verdict, f.options.Operator.ClusterOperator))
	}
	if err := atomicfile.WriteTo(filepath.Join(f.out, intervalsFile), intervals); err != nil {
		return err
	}
	if err := atomicfile.WriteTo(filepath.Join(f.out, f.options.Run.Scenario, result.VerdictFile), show); err != nil {
		return err
	}
	known, err := statementIDs()
	if err != nil {
		return err
	}
	return writeReport(cmd.OutOrStdout(), f.output, render.Options{Dirs: []string{f.out}, Out: f.out, JUnit: true, Statements: known})
}

// record writes the history to a folder of its own, as a run does.
func (f *observeFlags) record(ctx context.Context) (events []history.Event, err error) {
	dir := filepath.Join(f.out, f.options.Run.Scenario)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("observe: %w", err)
	}
	file, err := os.Create(filepath.Join(dir, result.HistoryFile))
	if err != nil {
		return nil, fmt.Errorf("observe: %w", err)
	}
	log := history.NewLog(file)
	starved := starvation.Watch{Record: func(s starvation.Span) {
		if len(log.Events()) > 0 { // a history begins with its run
			log.Record(s.To, history.RoleHarness, &history.Starvation{Role: history.RoleHarness, From: s.From.Round(0).UTC(), To: s.To.Round(0).UTC()})
		}
	}}
	ctx, stop := context.WithCancel(ctx)
	var watching sync.WaitGroup
	watching.Go(func() { starved.Run(ctx) })
	err = observe.Record(ctx, f.options, log)
	stop()
	watching.Wait()
	return log.Events(), errors.Join(err, file.Close())
}
