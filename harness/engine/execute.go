package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"k8s.io/utils/clock"

	"github.com/kmsharness/kmsharness/harness/backend"
	"github.com/kmsharness/kmsharness/harness/check"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/result"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

// Execution is how a scenario is executed from preparation to verdict.
type Execution struct {
	Options
	// Out is the output directory; the scenario gets a directory of its own name in it.
	Out string
	// Keep leaves the environment of a scenario that did not pass running.
	Keep bool
	// Artifacts says when they are collected; empty is on failure.
	Artifacts Artifacts
	// History, where it is set, receives the history instead of a file, and no file is written at all: for runs of which nearly all
	// are only counted. The same run again, with files, is for those that are looked at.
	History io.Writer
	// Buffer, where it is set, is where the events of the run are kept, and left for the next run; it belongs to one run at a time.
	Buffer *[]history.Event
	// Invariants judge the run in addition to those of package check.
	Invariants []check.Invariant
	// Verdict, where it is set, receives what the checker found.
	Verdict func(check.Verdict)
	// NotAfter, where it is set, is the last instant at which a scenario is begun (--time): a later one is not begun,
	// which is no pass.
	NotAfter time.Time
	// Unsupported is what the scenario needs that the system under test does not have, beside what the backend lacks; Notes go into the result.
	Unsupported, Notes []string
	// Again marks the result as that of a second try, with nothing beside it (ExecuteAgain).
	Again bool
	// Preparing, where it is set, receives in place of Progress what the backend tells while it prepares the environment, which can take minutes.
	Preparing func(string)
}

// Execute prepares an environment, runs the scenario, judges the history by every invariant and writes history, verdict
// and result below Out. Everything that can go wrong is in the result; the scenario must be valid.
func Execute(ctx context.Context, b backend.Backend, s *scenario.Scenario, x Execution) result.Result {
	x.Options = x.Options.withDefaults()
	x.Backend = b.Name()
	r := x.result(b, s)
	r.Notes = append(r.Notes, x.Notes...)
	if lacks := append(b.Unsupported(s), x.Unsupported...); len(lacks) > 0 {
		r.Status, r.Reasons = result.NotSupported, lacks
		return x.save(r, nil)
	}
	if x.late() {
		r.Status, r.Reasons = result.NotBegun, []string{"the time that the run was given was up before its turn came"}
		return x.save(r, nil)
	}
	err := x.announce(r, result.Interrupted, "its process ended before the scenario did")
	if err == nil {
		err = x.within(ctx, b, func(ctx context.Context, x Execution) error { return x.execute(ctx, b, s, r.Dir, &r) })
	}
	if err != nil && ctx.Err() != nil { // what was found until then may come from the interrupt
		r.Status, r.Reasons, r.Failures = result.Interrupted, []string{"interrupted: " + context.Cause(ctx).Error()}, nil
		err = nil
	}
	return x.save(r, err)
}

// within calls f in the time of the backend: for sim in a bubble of testing/synctest, in which time.Now is virtual and
// all goroutines of the run live. A goroutine of f must not outlive it.
func (x Execution) within(ctx context.Context, b backend.Backend, f func(context.Context, Execution) error) (err error) {
	w, ok := b.(backend.Within)
	if !ok {
		return f(ctx, x)
	}
	failed := w.Within(ctx, x.Seed, func(ctx context.Context) {
		x.Runtime = RealTime(clock.RealClock{})
		x.Began = x.Runtime.Now()
		err = f(ctx, x)
	})
	return errors.Join(failed, err)
}

// Announce saves a result for each scenario that is about to be executed. It holds until the scenario begins.
func Announce(b backend.Backend, all []*scenario.Scenario, x Execution) error {
	x.Options = x.Options.withDefaults()
	var errs []error
	for _, s := range all {
		errs = append(errs, x.announce(x.result(b, s), result.NotBegun, "the run ended before its turn came"))
	}
	return errors.Join(errs...)
}

// announce saves a result that holds if this process ends before it saves another. Otherwise nothing would tell of a
// scenario whose process was killed, and a run with a crash would look complete.
func (x Execution) announce(r result.Result, status result.Status, reason string) error {
	if x.History != nil {
		return nil
	}
	r.Status, r.Reasons = status, []string{reason}
	return r.Save(r.Dir)
}

// result is what is known of a scenario before it begins.
func (x Execution) result(b backend.Backend, s *scenario.Scenario) result.Result {
	return result.Result{Scenario: s.Name, Title: s.Title, Area: s.Area, File: s.File, Backend: b.Name(), Form: s.Contract, Plugin: x.Plugin.String(), Operator: x.operatorOf(s).String(), Seed: x.Seed,
		Began: x.Began, Reproduce: x.Reproduce, Dir: filepath.Join(x.Out, s.Name), JudgedAgain: x.Again}
}

// late reports whether no scenario may be begun any more.
func (x Execution) late() bool { return !x.NotAfter.IsZero() && x.Runtime.Now().After(x.NotAfter) }

// save ends a result. An error makes it one that could not run, whatever was found until then.
func (x Execution) save(r result.Result, err error) result.Result {
	if err != nil {
		r.Status, r.Reasons = result.CouldNotRun, append(r.Reasons, err.Error())
	}
	r.Took = x.Runtime.Now().Sub(r.Began)
	if x.History != nil {
		return r
	}
	if err := r.Save(r.Dir); err != nil {
		r.Status, r.Reasons = result.CouldNotRun, append(r.Reasons, err.Error())
	}
	return r
}

func (x Execution) execute(ctx context.Context, b backend.Backend, s *scenario.Scenario, dir string, r *result.Result) (err error) {
	to, logs, shut, err := x.historyIn(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, shut()) }()
	if x.Preparing == nil {
		x.Preparing = x.Progress
	}
	x.Log = history.NewLog(to)
	if x.Buffer != nil {
		x.Log = history.NewLogIn(to, *x.Buffer)
		defer func() { *x.Buffer = x.Log.Buffer() }()
	}
	env, err := x.prepare(ctx, b, backend.Spec{Scenario: s, Seed: x.Seed, Log: x.Log, OutDir: logs, Progress: x.Preparing,
		FailedBoot: func(cause string) { r.FailedBoots = append(r.FailedBoots, cause) }})
	preparation := x.Runtime.Now().Sub(x.Began)
	if err != nil {
		r.Waited(preparation, s.Topology.ControlPlanes, nil)
		return fmt.Errorf("prepare: %w", err)
	}
	if x.History != nil { // no file is written
		x.Artifacts = ArtifactsNever
	}
	collecting := x.collecting(env, dir)
	x.OnFailure = collecting.atFailure
	err = Run(ctx, env, s, x.Options)
	if flush := x.Log.Flush(); flush != nil {
		err = errors.Join(err, fmt.Errorf("write the history: %w", flush))
	}
	err = errors.Join(err, x.judge(r))
	if r.Status == result.Passed {
		r.Covers = s.Covers
	}
	if _, virtual := b.(backend.Within); !virtual {
		r.Waited(preparation, s.Topology.ControlPlanes, x.Log.Events())
	}
	r.Notes = append(r.Notes, collecting.atEnd(ctx, err == nil && r.Status == result.Passed)...)
	return errors.Join(err, x.release(ctx, env, r.Status != result.Passed))
}

// prepare has a limit: an environment that never comes up must not cost a gate more time than a verdict does. Each release of Kubernetes that the
// scenario names may have to be built first.
func (x Execution) prepare(ctx context.Context, b backend.Backend, spec backend.Spec) (backend.Environment, error) {
	patience := time.Duration(1+len(spec.Scenario.Kubernetes())) * x.Limits.Prepare
	late := fmt.Errorf("the environment was not ready after %v", patience)
	ctx, cancel := context.WithCancelCause(ctx) // not a timeout: what an environment goes on with must not end when it is ready
	limit := time.AfterFunc(patience, func() { cancel(late) })
	defer limit.Stop()
	env, err := b.Prepare(ctx, spec)
	if err != nil && context.Cause(ctx) == late {
		err = fmt.Errorf("%w: %w", late, err)
	}
	return env, err
}

// historyIn is where the history goes, and where the logs of processes are kept; empty: nowhere.
func (x Execution) historyIn(dir string) (to io.Writer, logs string, shut func() error, err error) {
	if x.History != nil {
		return x.History, "", func() error { return nil }, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, "", nil, fmt.Errorf("make the output directory: %w", err)
	}
	file, err := os.Create(filepath.Join(dir, result.HistoryFile))
	if err != nil {
		return nil, "", nil, fmt.Errorf("write the history: %w", err)
	}
	return file, dir, file.Close, nil
}

// release runs also after ctx has ended: an interrupted run must not leave processes or containers behind.
func (x Execution) release(ctx context.Context, env backend.Environment, bad bool) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), x.Limits.Action)
	defer cancel()
	if err := env.Release(ctx, x.Keep && bad); err != nil {
		return fmt.Errorf("release the environment: %w", err)
	}
	return nil
}

// judge asks the checker and writes what it says.
func (x Execution) judge(r *result.Result) error {
	events := x.Log.Events()
	verdict := check.Run(events, x.Invariants...)
	r.Judge(verdict, events)
	if x.Verdict != nil {
		x.Verdict(verdict)
	}
	if x.History != nil {
		return nil
	}
	var text bytes.Buffer
	if err := check.Print(&text, verdict); err != nil {
		return fmt.Errorf("print the verdict: %w", err)
	}
	data, err := json.MarshalIndent(verdict, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the verdict: %w", err)
	}
	return errors.Join(os.WriteFile(filepath.Join(r.Dir, result.VerdictFile), text.Bytes(), 0o644),
		os.WriteFile(filepath.Join(r.Dir, result.VerdictJSON), append(data, '\n'), 0o644))
}

// ExecuteAgain executes a scenario whose result is inconclusive once more; the caller runs nothing beside it. The second result counts, whatever it
// is. The files of the first try are kept in result.FirstTryDir. Where no scenario may be begun any more, the first result stays.
func ExecuteAgain(ctx context.Context, b backend.Backend, s *scenario.Scenario, x Execution) result.Result {
	x.Options = x.Options.withDefaults()
	dir := filepath.Join(x.Out, s.Name)
	first, err := result.ReadResult(filepath.Join(dir, result.ResultFile))
	if err == nil && (ctx.Err() != nil || x.late()) {
		return first
	}
	if err == nil {
		err = result.SetAside(dir)
	}
	if err != nil { // there is no first try to keep
		return x.save(x.result(b, s), err)
	}
	x.Again = true
	return Execute(ctx, b, s, x)
}
