package local

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/utils/clock"

	"github.com/kmsharness/kmsharness/harness/engine"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/result"
	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/harness/undertest"
)

// ownPlugin is a second fake plugin as the plugin under test. Its KMS is the process that the harness runs for fake plugins.
func ownPlugin(more string) undertest.Plugin {
	const kms = " --remote=unix://{shared}/../../kms.sock"
	return undertest.Plugin{
		Command: "fake-kms-plugin serve --listen={endpoint} --node={node} --key-id={keyID} --key=own-{keyID}" + kms + more,
		Break:   "fake-kms-plugin kms rule '{node}/*' --cut-off refuse" + kms,
		Restore: "fake-kms-plugin kms unrule '{node}/*'" + kms,
		Rotate:  "fake-kms-plugin kms rotate own-{keyID}" + kms,
		Product: undertest.Product{Version: "1"},
	}
}

func underTest(t *testing.T, p undertest.Plugin, steps ...scenario.Step) result.Result {
	t.Helper()
	b := newBackend(t, Options{System: undertest.System{Plugin: p}})
	ctx, cancel := context.WithTimeout(context.Background(), smokeTimeout)
	defer cancel()
	s := scenario.Scenario{Name: "real", Title: "A plugin under test.", Area: "plugin", Topology: scenario.Topology{ControlPlanes: 2}, Steps: steps}
	return engine.Execute(ctx, b, s.WithDefaults(), engine.Execution{Out: t.TempDir(), Options: engine.Options{
		Runtime: engine.RealTime(clock.RealClock{}), Seed: 1, Plugin: p.Implementation(), Progress: func(line string) { t.Log(line) }}})
}

func expect(cel string) scenario.Step {
	return scenario.Step{Expect: &scenario.Expectation{Mode: scenario.ModeWithin, CEL: cel, Bound: scenario.D("detection + 5s")}}
}

func do(a scenario.Action) scenario.Step { return scenario.Step{Action: a} }

// TestRealPlugin: actions on the plugin act on the process under test, hooks on its KMS, and the journal has every call.
func TestRealPlugin(t *testing.T) {
	plugin := scenario.Selector{Role: history.RolePlugin, Node: "cp-1"}
	fine := expect(`rollup.degraded.reason == "AsExpected"`)
	r := underTest(t, ownPlugin(""),
		do(&scenario.Data{Op: scenario.DataWrite, Count: 3, Size: 64}),
		do(&scenario.Process{Do: scenario.VerbKill, Target: plugin}),
		expect(`rollup.degraded.status == "True" && report["cp-1"]["1"].status == "error" && report["cp-2"]["1"].status == "healthy"`),
		do(&scenario.Process{Do: scenario.VerbStart, Target: plugin}), fine,
		do(&scenario.Process{Do: scenario.VerbPause, Target: plugin}),
		expect(`report["cp-1"]["1"].status == "error"`),
		do(&scenario.Process{Do: scenario.VerbResume, Target: plugin}), fine,
		do(&scenario.KMS{Op: scenario.KMSCut, Node: "cp-2"}),
		expect(`report["cp-2"]["1"].status == "unhealthy" && report["cp-1"]["1"].status == "healthy"`),
		do(&scenario.KMS{Op: scenario.KMSRestore, Node: "cp-2"}), fine,
		do(&scenario.Rotate{}),
		do(&scenario.Data{Op: scenario.DataVerify}),
		expect(`data.lost == 0 && data.verified > 0`))
	if r.Status != result.Passed && r.Status != result.Inconclusive {
		t.Fatal(r.Text())
	}
	if r.On() != "local with plugin fake-kms-plugin 1" {
		t.Error(r.On())
	}
	for _, log := range []string{"plugin-cp-1-1.log", "plugin-cp-1-1-front.log", "plugin-hooks.log"} {
		if _, err := os.Stat(filepath.Join(r.Dir, "logs", log)); err != nil {
			t.Errorf("log %s: %v", log, err)
		}
	}
}

// TestRealPluginThatIsBad: the invariant that names a bad fake plugin names a bad plugin under test.
func TestRealPluginThatIsBad(t *testing.T) {
	r := underTest(t, ownPlugin(" --fault key-id-flip-flop"), scenario.Step{Wait: scenario.D("6I")})
	if r.Status != result.Failed || !strings.Contains(r.Text(), "KEY-ID-STABLE") {
		t.Fatal(r.Text())
	}
}

// TestHookThatFails: the failure names the hook, its exit code and what it wrote.
func TestHookThatFails(t *testing.T) {
	p := ownPlugin("")
	p.Rotate = "sh -c 'echo no session >&2; exit 7'"
	r := underTest(t, p, do(&scenario.Rotate{}))
	for _, want := range []string{"plugin.rotate", "exit code 7", "no session"} {
		if r.Status != result.Failed || !strings.Contains(r.Text(), want) {
			t.Fatalf("%s: want %q", r.Text(), want)
		}
	}
}
