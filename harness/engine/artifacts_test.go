package engine_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kmsharness/kmsharness/harness/backend"
	"github.com/kmsharness/kmsharness/harness/engine"
	"github.com/kmsharness/kmsharness/harness/result"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

// collector is a world that notes in which order it is asked for what.
type collector struct {
	*released
	asked []string
	fails error
}

func (c *collector) note(what string) { c.asked = append(c.asked, what) }

func (c *collector) Do(ctx context.Context, a scenario.Action) error {
	c.note("do " + string(scenario.VerbOf(a)))
	return c.released.Do(ctx, a)
}

func (c *collector) Finish(ctx context.Context) error {
	c.note("finish")
	return c.released.Finish(ctx)
}

func (c *collector) Release(ctx context.Context, keep bool) error {
	c.note("release")
	return c.released.Release(ctx, keep)
}

func (c *collector) Snapshot(_ context.Context, dir string) error {
	c.note("snapshot " + filepath.Base(dir))
	return c.fails
}

func (c *collector) Collect(_ context.Context, dir string, _ func(string)) error {
	c.note("collect " + filepath.Base(dir))
	return c.fails
}

// collecting is a backend of one such world.
type collecting struct {
	*worlds
	env    *collector
	outDir string // that it was asked for
}

func (b *collecting) Prepare(ctx context.Context, spec backend.Spec) (backend.Environment, error) {
	env, err := b.worlds.Prepare(ctx, spec)
	b.env.released, b.outDir = env.(*released), spec.OutDir
	return b.env, err
}

func collect(t *testing.T, ctx context.Context, when engine.Artifacts, expression string, fails error) (result.Result, []string) {
	t.Helper()
	b := &collecting{worlds: &worlds{world: newWorld(t)}, env: &collector{fails: fails}}
	s := scenario.Scenario{Name: "try", Title: "A try.", Area: "plugin", Steps: []scenario.Step{
		{Action: &scenario.Inject{Plugin: scenario.Selector{Node: "cp-2"}, Fault: "hang"}},
		{Expect: &scenario.Expectation{Mode: scenario.ModeWithin, CEL: expression, Bound: scenario.D("detection")}},
	}}
	r := engine.Execute(ctx, b, s.WithDefaults(), engine.Execution{Out: t.TempDir(), Artifacts: when, Options: engine.Options{Runtime: b.world}})
	return r, b.env.asked
}

const (
	met   = `rollup.degraded.status == "True"`
	unmet = `rollup.degraded.status == "Unknown"`
)

// What failed still stands when the first picture is taken, and the environment is there until everything is collected.
func TestArtifactsInOrder(t *testing.T) {
	_, asked := collect(t, context.Background(), "", unmet, nil)
	wantLines(t, "asked", asked, "do inject", "snapshot at-failure", "do release", "finish", "collect artifacts", "release")
}

func TestArtifactsWhen(t *testing.T) {
	for name, c := range map[string]struct {
		when       engine.Artifacts
		expression string
		want       []string
	}{
		"never":                              {engine.ArtifactsNever, unmet, nil},
		"always, and it failed":              {engine.ArtifactsAlways, unmet, []string{"snapshot at-failure", "collect artifacts"}},
		"only the checker is not content":    {engine.ArtifactsOnFailure, met, []string{"collect artifacts"}},
		"nobody is content, and nobody asks": {engine.ArtifactsNever, met, nil},
	} {
		_, asked := collect(t, context.Background(), c.when, c.expression, nil)
		asked = slices.DeleteFunc(asked, func(s string) bool { return !strings.HasPrefix(s, "snapshot") && !strings.HasPrefix(s, "collect") })
		wantLines(t, name, asked, c.want...)
	}
}

// TestNoFilesWithHistory: a run whose history goes elsewhere leaves neither artifacts nor logs, whatever is asked for.
func TestNoFilesWithHistory(t *testing.T) {
	t.Chdir(t.TempDir())
	b := &collecting{worlds: &worlds{world: newWorld(t)}, env: &collector{}}
	s := scenario.Scenario{Name: "try", Title: "A try.", Area: "plugin", Steps: []scenario.Step{{Expect: &scenario.Expectation{Mode: scenario.ModeWithin, CEL: unmet, Bound: scenario.D("detection")}}}}
	r := engine.Execute(context.Background(), b, s.WithDefaults(), engine.Execution{History: io.Discard, Artifacts: engine.ArtifactsAlways, Options: engine.Options{Runtime: b.world}})
	if r.Status != result.Failed || b.outDir != "" {
		t.Errorf("%s, logs in %q; expected that it failed, and no logs", r.Status, b.outDir)
	}
	wantLines(t, "asked", b.env.asked, "finish", "release")
	if left, err := os.ReadDir("."); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
}

// What could not be collected is told, and judges nothing.
func TestArtifactsDoNotJudge(t *testing.T) {
	good, _ := collect(t, context.Background(), "", unmet, nil)
	bad, _ := collect(t, context.Background(), "", unmet, errors.New("docker is gone"))
	if bad.Status != good.Status || len(bad.Failures) != len(good.Failures) || len(bad.Reasons) != 0 {
		t.Errorf("with artifacts %+v, without %+v", good, bad)
	}
	if len(good.Notes) != 0 || len(bad.Notes) != 2 || !strings.Contains(bad.Text(), "note: artifacts are not complete: docker is gone") {
		t.Errorf("notes %v and %v in\n%s", good.Notes, bad.Notes, bad.Text())
	}
	if data, err := os.ReadFile(filepath.Join(bad.Dir, result.ResultFile)); err != nil || !strings.Contains(string(data), "docker is gone") {
		t.Errorf("the result says %s, %v", data, err)
	}
}

// TestArtifactsAfterAnInterrupt: an interrupt does not wait for artifacts.
func TestArtifactsAfterAnInterrupt(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	r, asked := collect(t, ctx, engine.ArtifactsAlways, met, nil)
	if r.Status != result.Interrupted || slices.Contains(asked, "collect artifacts") {
		t.Errorf("%s, asked %v", r.Status, asked)
	}
}
