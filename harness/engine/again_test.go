package engine_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/harness/engine"
	"github.com/kmsharness/kmsharness/harness/report"
	"github.com/kmsharness/kmsharness/harness/result"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

func tryScenario() *scenario.Scenario {
	return (&scenario.Scenario{Name: "try", Title: "A try.", Area: "plugin", Steps: []scenario.Step{
		{Action: &scenario.Inject{Plugin: scenario.Selector{Node: "cp-2"}, Fault: "hang"}},
		{Expect: &scenario.Expectation{Mode: scenario.ModeWithin, CEL: `rollup.degraded.status == "Unknown"`, Bound: scenario.D("detection")}},
	}}).WithDefaults()
}

// TestExecuteAgain: the second try counts and says that it is one, and the files of the first are kept.
func TestExecuteAgain(t *testing.T) {
	out := t.TempDir()
	first := result.Result{Scenario: "try", Title: "A try.", Status: result.Inconclusive, Reasons: []string{"starved"}, Dir: filepath.Join(out, "try")}
	if err := first.Save(first.Dir); err != nil {
		t.Fatal(err)
	}
	again := func(ctx context.Context, notAfter time.Time) result.Result {
		b := &worlds{world: newWorld(t)}
		if !notAfter.IsZero() {
			notAfter = b.world.Now().Add(-time.Second)
		}
		return engine.ExecuteAgain(ctx, b, tryScenario(), engine.Execution{Out: out, NotAfter: notAfter, Options: engine.Options{Runtime: b.world}})
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for name, r := range map[string]result.Result{"interrupted": again(ended, time.Time{}), "no time left": again(t.Context(), time.Unix(1, 0))} {
		if r.Status != result.Inconclusive || r.JudgedAgain {
			t.Errorf("%s: %+v", name, r)
		}
	}
	r := again(t.Context(), time.Time{})
	if r.Status != result.Failed || !r.JudgedAgain {
		t.Errorf("%+v", r)
	}
	if saved, err := result.ReadResult(filepath.Join(out, "try", result.ResultFile)); err != nil || !saved.JudgedAgain || saved.Status != result.Failed {
		t.Errorf("%+v, %v", saved, err)
	}
	if kept, err := result.ReadResult(filepath.Join(out, "try", result.FirstTryDir, result.ResultFile)); err != nil || kept.Status != result.Inconclusive {
		t.Errorf("%+v, %v", kept, err)
	}
	if s, err := report.Collect(out); err != nil || len(s.Results) != 1 {
		t.Errorf("the first try counts: %+v, %v", s, err)
	}
	if r := engine.ExecuteAgain(t.Context(), &worlds{world: newWorld(t)}, tryScenario(), engine.Execution{Out: t.TempDir(), Options: engine.Options{Runtime: newWorld(t)}}); r.Status != result.CouldNotRun {
		t.Errorf("without a first try: %+v", r)
	}
}

// TestExecuteInterrupted: what --fail-fast or Ctrl-C ends is neither failed nor passed, whatever was found until then.
func TestExecuteInterrupted(t *testing.T) {
	b := &worlds{world: newWorld(t)}
	ctx, cancel := context.WithCancelCause(t.Context())
	b.world.react = func(scenario.Action) error { cancel(os.ErrProcessDone); return nil }
	r := engine.Execute(ctx, b, tryScenario(), engine.Execution{Out: t.TempDir(), Options: engine.Options{Runtime: b.world}})
	if r.Status != result.Interrupted || len(r.Failures) > 0 || len(r.Reasons) != 1 {
		t.Errorf("%+v", r)
	}
}
