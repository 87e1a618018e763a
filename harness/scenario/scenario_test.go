package scenario_test

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/internal/strictyaml"
)

func timing() contract.Timing {
	return contract.Timing{Interval: time.Second, Jitter: 100 * time.Millisecond, ProbeTimeout: 500 * time.Millisecond,
		WriteTimeout: time.Second, AggregatorLatency: time.Second}
}

func TestParseFillsEverything(t *testing.T) {
	s, err := parser(t).Parse("plugin-hangs.yaml", []byte(strings.Replace(valid, "  - wait: 2I\n", `  - parallel:
    - inject: {plugin: {node: any, keyID: "1"}, fault: delay, by: 2R, for: 3I, count: 2, probability: 0.5}
    - link: {from: reporter, to: apiserver, node: cp-1, mode: slow, delay: 1s}
    at: 1I
    after: 500ms
  - repeat: {times: 2, steps: [{encryption: {type: KMS, keyIDs: ["2", "1"]}}]}
  - kill: {role: aggregator, instance: 1}
  - holds: report["cp-1"]["2"].status == "healthy"
    for: 2I
`, 1)))
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(s.Topology, scenario.Topology{ControlPlanes: 3, KeyIDs: []string{"1"}, Aggregators: 2, APIServers: []string{"kube-apiserver"}, Start: "running", Lifecycle: "direct", Connectivity: "loopback", AnyConnectivity: true}) {
		t.Errorf("topology %+v", s.Topology)
	}
	group := s.Steps[2]
	if group.At.Text != "1I" || group.After.Text != "500ms" || group.Pos.Line != 19 {
		t.Errorf("group %+v", group)
	}
	resolved, err := scenario.Resolve(group.Parallel[0].Action, timing(), faults{})
	if err != nil {
		t.Fatal(err)
	}
	inject := resolved.(*scenario.Inject)
	want := map[string]any{"by": time.Second, "for": 3 * time.Second, "count": 2, "probability": 0.5}
	if !reflect.DeepEqual(inject.Params, want) || inject.Plugin.Node != "any" || inject.Fault != "delay" {
		t.Errorf("inject %+v, expected params %v", inject, want)
	}
	if d := group.Parallel[1].Action.(*scenario.Link).Delay.Text; d != "1s" {
		t.Errorf("delay %q", d)
	}
	if s.Steps[3].Repeat.Times != 2 || !reflect.DeepEqual(s.Steps[3].Repeat.Steps[0].Action.(*scenario.Encryption).KeyIDs, []string{"2", "1"}) {
		t.Errorf("repeat %+v", s.Steps[3].Repeat)
	}
	if s.Steps[4].Action.(*scenario.Process).Target.Instance != "1" {
		t.Errorf("kill %+v", s.Steps[4].Action)
	}
	if e := s.Steps[5].Expect; e.Mode != scenario.ModeHolds || e.Bound.Text != "2I" {
		t.Errorf("holds %+v", e)
	}
}

func TestDefaults(t *testing.T) {
	s := scenario.Scenario{}.WithDefaults()
	want := scenario.Topology{ControlPlanes: 3, KeyIDs: []string{"1"}, Aggregators: 1, APIServers: []string{"kube-apiserver"}, Start: "running", Lifecycle: "direct", Connectivity: "loopback", AnyConnectivity: true}
	if !reflect.DeepEqual(s.Topology, want) || s.Contract != "conditions" || s.Operator != "kubeapiserver" {
		t.Errorf("%+v", s)
	}
}

func TestValidateGo(t *testing.T) {
	good := scenario.Scenario{Name: "in-go", Title: "Written in Go.", Area: "plugin", Steps: []scenario.Step{
		{Action: &scenario.Rotate{Lag: scenario.Lag{Nodes: map[string]scenario.Duration{"cp-1": scenario.D("2s")}}}},
		{Expect: &scenario.Expectation{Mode: scenario.ModeWithin, CEL: "rollup.degraded.exists", Bound: scenario.D("detection")}},
	}}
	if err := parser(t).Validate(good.WithDefaults()); err != nil {
		t.Error(err)
	}
	bad := good
	bad.Steps = []scenario.Step{{}, {Wait: scenario.D("2x")},
		{Action: &scenario.Process{Do: "explode"}},
		{Expect: &scenario.Expectation{Mode: "soon", CEL: "true"}}}
	err := parser(t).Validate(bad.WithDefaults())
	for _, want := range []string{
		"in-go: steps[0]: step has 0 of action, expectation, parallel, repeat and wait, expected one",
		`in-go: steps[1].wait: duration "2x": expected a number and a unit`,
		`in-go: steps[2].explode: verb is "explode", expected inject`,
		`in-go: steps[3]: mode is "soon", expected within, holds or never`,
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("no line %q in:\n%v", want, err)
		}
	}
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p := parser(t)
	if _, err := p.Load(dir); err == nil || !strings.Contains(err.Error(), "no *.yaml below") {
		t.Errorf("empty directory: %v", err)
	}
	write("a/plugin-hangs.yaml", valid)
	write("other.yaml", strings.Replace(valid, "name: plugin-hangs", "name: other", 1))
	write("README.md", "no scenario")
	got, err := p.Load(dir, filepath.Join(dir, "other.yaml"))
	if err != nil || len(got) != 2 || got[0].Name != "plugin-hangs" || got[1].Name != "other" {
		t.Fatalf("%d scenarios, %v", len(got), err)
	}
	write("b/plugin-hangs.yaml", valid)
	write("b/huge.yaml", strings.Repeat("#", strictyaml.MaxBytes+10))
	_, err = p.Load(dir)
	for _, want := range []string{`scenario "plugin-hangs" stands in`, "b/huge.yaml:1:1: file is 1048577 bytes, expected at most 1048576"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in %v", want, err)
		}
	}
	if _, err := p.Load(filepath.Join(dir, "missing.yaml")); err == nil {
		t.Error("a missing file is accepted")
	}
}

func TestDuration(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"4I + A": 5 * time.Second, "2.5I": 2500 * time.Millisecond, "500ms": 500 * time.Millisecond, "I": time.Second,
		"detection": 3600 * time.Millisecond, "detection + 4s": 7600 * time.Millisecond, "staleness+cleanup": 10 * time.Second,
	} {
		if got, err := scenario.D(text).Resolve(timing()); err != nil || got != want {
			t.Errorf("%s = %v, %v, expected %v", text, got, err, want)
		}
	}
	for _, text := range []string{"ms", "30m + 31m", "1e5s", "4 I +", "+", "∞", "detection * 2"} {
		if d, err := scenario.D(text).Resolve(timing()); err == nil {
			t.Errorf("%s = %v, expected an error", text, d)
		}
	}
}

func TestAccessIsRestored(t *testing.T) {
	of := func(op, node string) *scenario.KMS { return &scenario.KMS{Op: op, Node: node} }
	cut := of(scenario.KMSCut, "cp-2")
	for b, ends := range map[*scenario.KMS]bool{
		of(scenario.KMSRestore, "cp-2"): true, of(scenario.KMSRestore, ""): true, of(scenario.KMSRestore, scenario.NodeAll): true,
		of(scenario.KMSRestore, "cp-1"): false, of(scenario.KMSAllow, "cp-2"): false,
	} {
		if scenario.Ends(b, cut) != ends {
			t.Errorf("%s is ended by %s: expected %v", scenario.Line(cut, nil), scenario.Line(b, nil), ends)
		}
	}
}

// What takes an action back keeps what it acts on, and nothing that its mode must not have.
func TestUndo(t *testing.T) {
	for _, test := range []struct{ action, undo scenario.Action }{
		{&scenario.Link{From: "apiserver", To: "etcd", Node: "cp-1", Mode: "slow", Delay: scenario.D("1s")}, &scenario.Link{From: "apiserver", To: "etcd", Node: "cp-1", Mode: "restore"}},
		{&scenario.Refuse{Role: "reporter", Node: "cp-1", Mode: "timeout", Method: "get", Count: 3}, &scenario.Refuse{Role: "reporter", Node: "cp-1", Mode: "restore"}},
		{&scenario.Clock{Node: "cp-1", Mode: "ahead", By: scenario.D("2I")}, &scenario.Clock{Node: "cp-1", Mode: "restore"}},
		{&scenario.Watches{Mode: "late", By: scenario.D("2I")}, &scenario.Watches{Mode: "restore"}},
		{&scenario.KMS{Op: "disable", KEK: 2}, &scenario.KMS{Op: "enable", KEK: 2}},
		{&scenario.KMS{Op: "expire", Node: "cp-1", Failure: "x"}, &scenario.KMS{Op: "renew", Node: "cp-1"}},
		{&scenario.Credential{Provider: true, Mode: "revoke"}, &scenario.Credential{Provider: true, Mode: "renew"}},
	} {
		undo := scenario.Undo(test.action)
		if !reflect.DeepEqual(undo, test.undo) || !scenario.Lasts(test.action) || !scenario.Ends(undo, test.action) || scenario.Harm(test.action) == "" {
			t.Errorf("%s: %+v", scenario.Line(test.action, nil), undo)
		}
		if scenario.Undo(undo) != nil || scenario.Lasts(undo) || scenario.Harm(undo) != "" {
			t.Errorf("%s lasts, or does harm", scenario.Line(undo, nil))
		}
	}
	if _, is := scenario.Undo(&scenario.KMS{Op: "delete"}).(*scenario.Rotate); !is || scenario.Lasts(&scenario.KMS{Op: "delete"}) {
		t.Error("a deleted KEK comes back")
	}
	if a := (&scenario.Watches{Mode: "closed"}); scenario.Undo(a) != nil || scenario.Harm(a) != "watches-closed" {
		t.Error("a closed watch is taken back, or does no harm")
	}
}
