package engine_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/backend"
	"github.com/kmsharness/kmsharness/harness/engine"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/report"
	"github.com/kmsharness/kmsharness/harness/result"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

// worlds is a backend of one world.
type worlds struct {
	world    *world
	lacks    []string
	prepare  error
	released []bool
}

func (b *worlds) Name() string                            { return "world" }
func (b *worlds) Timing() contract.Timing                 { return timing() }
func (b *worlds) Unsupported(*scenario.Scenario) []string { return b.lacks }
func (b *worlds) Close(context.Context) error             { return nil }
func (b *worlds) Prepare(_ context.Context, spec backend.Spec) (backend.Environment, error) {
	b.world.log = spec.Log
	return &released{b.world, b}, b.prepare
}

type released struct {
	*world
	b *worlds
}

func (r *released) Release(_ context.Context, keep bool) error {
	r.b.released = append(r.b.released, keep)
	return nil
}

func execute(t *testing.T, b *worlds, text string) (result.Result, string) {
	t.Helper()
	out := t.TempDir()
	s := scenario.Scenario{Name: "try", Title: "A try.", Area: "plugin", Steps: []scenario.Step{
		{Action: &scenario.Inject{Plugin: scenario.Selector{Node: "cp-2"}, Fault: "hang"}},
		{Expect: &scenario.Expectation{Mode: scenario.ModeWithin, CEL: text, Bound: scenario.D("detection")}},
	}}
	r := engine.Execute(context.Background(), b, s.WithDefaults(), engine.Execution{Out: out, Keep: true,
		Options: engine.Options{Runtime: b.world, Reproduce: "kmsharness run try.yaml --backend world"}})
	return r, out
}

// The operator under test is named in results of scenarios that have one.
func TestOperatorUnderTestIsNamed(t *testing.T) {
	for lifecycle, want := range map[string]string{"": "", scenario.LifecycleOperator: "o:dev"} {
		b := &worlds{world: newWorld(t), lacks: []string{"everything"}}
		s := scenario.Scenario{Name: "try", Topology: scenario.Topology{Lifecycle: lifecycle}}
		r := engine.Execute(t.Context(), b, s.WithDefaults(), engine.Execution{Out: t.TempDir(), Options: engine.Options{Operator: history.Implementation{Name: "o:dev"}}})
		if r.Operator != want {
			t.Errorf("lifecycle %q: operator %q, want %q", lifecycle, r.Operator, want)
		}
	}
}

func TestExecuteFailed(t *testing.T) {
	b := &worlds{world: newWorld(t)}
	r, out := execute(t, b, `rollup.degraded.status == "Unknown"`)
	// The checker finds more in this world, which the causal order puts first.
	if r.Status != result.Failed || !slices.ContainsFunc(r.Failures, func(f result.Failure) bool { return f.ID == "steps[1].expect" }) {
		t.Fatalf("result %+v", r)
	}
	text := r.Text()
	for _, want := range []string{"steps[1].expect at +3.600s", "Degraded True/PluginUnreachable", "reproduce: kmsharness run try.yaml", filepath.Join(out, "try")} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	for _, file := range []string{"history.jsonl", "verdict.txt", "verdict.json", "result.json"} {
		if info, err := os.Stat(filepath.Join(out, "try", file)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", file, err)
		}
	}
	f, err := os.Open(filepath.Join(out, "try", "history.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if events, err := history.Read(f); err != nil || len(events) != r.Events {
		t.Errorf("%d events in the file, %d in the result, %v", len(events), r.Events, err)
	}
	if len(b.released) != 1 || !b.released[0] {
		t.Errorf("released %v, expected to be kept", b.released)
	}
}

// TestExecuteJudges: the engine is content, but no plugin was ever called: the checker must not let that pass.
func TestExecuteJudges(t *testing.T) {
	r, _ := execute(t, &worlds{world: newWorld(t)}, `rollup.degraded.status == "True"`)
	if r.Status != result.Failed || r.Expectations != 4 {
		t.Errorf("result %+v", r)
	}
	for _, f := range r.Failures {
		if strings.Contains(f.ID, "steps") {
			t.Errorf("failure %+v, expected only the checker's", f)
		}
	}
}

func TestExecuteWithoutRun(t *testing.T) {
	r, out := execute(t, &worlds{world: newWorld(t), lacks: []string{"it has no plugins"}}, "true")
	if r.Status != result.NotSupported || r.Reasons[0] != "it has no plugins" {
		t.Errorf("result %+v", r)
	}
	if s, err := report.Collect(out); err != nil || s.Count(result.NotSupported) != 1 || s.ExitCode() != 1 {
		t.Errorf("summary %+v, %v", s, err)
	}
	r, _ = execute(t, &worlds{world: newWorld(t), prepare: errors.New("no etcd")}, "true")
	if r.Status != result.CouldNotRun || r.Reasons[0] != "prepare: no etcd" {
		t.Errorf("result %+v", r)
	}
	w := newWorld(t)
	w.finish = errors.New("lost a line")
	r, _ = execute(t, &worlds{world: w}, "true")
	if r.Status != result.CouldNotRun || !strings.Contains(r.Reasons[0], "lost a line") {
		t.Errorf("result %+v", r)
	}
}

// killed is a backend that looks at what is saved while it prepares: that is what a killed process leaves.
type killed struct {
	*worlds
	out   string
	saved result.Result
}

func (b *killed) Prepare(ctx context.Context, _ backend.Spec) (backend.Environment, error) {
	var err error
	b.saved, err = result.ReadResult(filepath.Join(b.out, "try", result.ResultFile))
	return nil, errors.Join(err, errors.New("killed"))
}

// TestWhatAKilledProcessLeaves: a result for each scenario from the beginning on.
func TestWhatAKilledProcessLeaves(t *testing.T) {
	b := &killed{worlds: &worlds{world: newWorld(t)}, out: t.TempDir()}
	s := (&scenario.Scenario{Name: "try", Title: "A try.", Area: "plugin"}).WithDefaults()
	x := engine.Execution{Out: b.out, Options: engine.Options{Runtime: b.world}}
	if err := engine.Announce(b, []*scenario.Scenario{s}, x); err != nil {
		t.Fatal(err)
	}
	if r, err := result.ReadResult(filepath.Join(b.out, "try", result.ResultFile)); err != nil || r.Status != result.NotBegun || r.Backend != "world" || len(r.Reasons) != 1 {
		t.Errorf("announced: %+v, %v", r, err)
	}
	if r := engine.Execute(context.Background(), b, s, x); b.saved.Status != result.Interrupted || b.saved.Area != "plugin" || len(b.saved.Reasons) != 1 {
		t.Errorf("begun: %+v; at the end %+v", b.saved, r)
	}
}

// never is a backend whose environments do not come up.
type never struct{ *worlds }

func (never) Prepare(ctx context.Context, _ backend.Spec) (backend.Environment, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// TestExecuteHasLimits: what never comes up costs a limited time, and what has no time left is not begun; neither is a pass.
func TestExecuteHasLimits(t *testing.T) {
	b := &worlds{world: newWorld(t)}
	s := (&scenario.Scenario{Name: "try", Title: "A try.", Area: "plugin"}).WithDefaults()
	x := engine.Execution{Out: t.TempDir(), Options: engine.Options{Runtime: b.world, Limits: engine.DefaultLimits()}}
	x.Limits.Prepare = time.Millisecond
	if r := engine.Execute(context.Background(), never{b}, s, x); r.Status != result.CouldNotRun || !strings.Contains(r.Reasons[0], "the environment was not ready after 1ms") {
		t.Errorf("never ready: %+v", r)
	}
	x.Limits = engine.DefaultLimits()
	x.NotAfter = b.world.Now().Add(-time.Second)
	if r := engine.Execute(context.Background(), never{b}, s, x); r.Status != result.NotBegun || len(r.Reasons) != 1 {
		t.Errorf("no time left: %+v", r)
	}
}
