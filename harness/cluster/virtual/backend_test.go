package virtual_test

import (
	"bytes"
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/clock"

	"github.com/kmsharness/kmsharness/harness/cluster/virtual"
	"github.com/kmsharness/kmsharness/harness/engine"
	"github.com/kmsharness/kmsharness/harness/result"
	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/harness/scenario/standard"
	"github.com/kmsharness/kmsharness/harness/swarm"
	"github.com/kmsharness/kmsharness/scenarios"
)

// TestScenarios runs scenarios of the catalogue; KMSHARNESS_SCENARIOS names them, separated by spaces, or is all. KMSHARNESS_CONTRACT is their wire
// form, as of kmsharness run --contract.
func TestScenarios(t *testing.T) {
	names := os.Getenv("KMSHARNESS_SCENARIOS")
	if names == "" {
		names = "steady-state plugin-hangs kek-rotation reporter-restarted-quickly reporter-silenced"
	}
	all, err := scenarios.Load()
	if err == nil {
		all, err = scenario.InForms(all, cmp.Or(os.Getenv("KMSHARNESS_CONTRACT"), scenario.ContractConditions))
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		name, _, _ := strings.Cut(s.Name, "@")
		if names != "all" && !strings.Contains(" "+names+" ", " "+name+" ") {
			continue
		}
		t.Run(s.Name, func(t *testing.T) {
			out := cmp.Or(os.Getenv("KMSHARNESS_OUT"), t.TempDir())
			began := time.Now()
			r := engine.Execute(t.Context(), virtual.New(virtual.Options{}), s, engine.Execution{Out: out,
				Options: engine.Options{Runtime: engine.RealTime(clock.RealClock{}), Faults: standard.Faults{}, Seed: 1}})
			t.Logf("%s: %s in %v", s.Name, r.Status, time.Since(began))
			if r.Status == result.NotSupported {
				t.Log(r.Reasons)
			}
			if r.Status != result.Passed && r.Status != result.NotSupported {
				verdict, _ := os.ReadFile(filepath.Join(out, s.Name, "verdict.txt"))
				t.Errorf("%v %+v\n%s", r.Reasons, r.Failures, verdict)
			}
		})
	}
}

// TestSameSeedSameHistory: two runs from one seed write the same bytes, and one from another seed does not. The certificates of aggregated API servers
// are others in each run.
func TestSameSeedSameHistory(t *testing.T) {
	all, err := scenarios.Load()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"aggregator-handed-over", "apiservers-single-node"} {
		s := all[slices.IndexFunc(all, func(s *scenario.Scenario) bool { return s.Name == name })]
		var first []byte
		for run, seed := range []int64{1, 1, 2} {
			out := t.TempDir()
			r := engine.Execute(t.Context(), virtual.New(virtual.Options{}), s, engine.Execution{Out: out,
				Options: engine.Options{Runtime: engine.RealTime(clock.RealClock{}), Faults: standard.Faults{}, Seed: seed}})
			text, err := os.ReadFile(filepath.Join(out, name, "history.jsonl"))
			if err != nil || r.Status != result.Passed {
				t.Fatalf("%s, seed %d: %s, %v, %v", name, seed, r.Status, r.Failures, err)
			}
			if run == 0 {
				first = text
			}
			if same := bytes.Equal(first, text); same != (seed == 1) {
				t.Errorf("%s, run %d, seed %d: the same bytes %v", name, run, seed, same)
			}
		}
	}
}

// TestSameSeedSameSwarm: seeds that swarm draws, with connections that are lost and plugins that are stopped, write the same bytes each time. One
// has an operator, of an older release for a while.
func TestSameSeedSameSwarm(t *testing.T) {
	for seed, plan := range map[int64]swarm.Plan{9: {}, 10: {}, 16: {}, 1: {Operator: true}} {
		s := plan.Scenario(seed)
		var texts [2]bytes.Buffer
		for i := range texts {
			r := engine.Execute(t.Context(), virtual.New(virtual.Options{}), s, engine.Execution{History: &texts[i],
				Options: engine.Options{Runtime: engine.RealTime(clock.RealClock{}), Faults: standard.Faults{}, Seed: seed}})
			if r.Status != result.Passed {
				t.Errorf("seed %d: %s, %v", seed, r.Status, r.Failures)
			}
		}
		if !bytes.Equal(texts[0].Bytes(), texts[1].Bytes()) {
			t.Errorf("seed %d: two runs wrote different bytes", seed)
		}
	}
}

// TestRotateWithoutPlugin: a KEK is rotated while a plugin does not run, which finds the new one when it starts.
func TestRotateWithoutPlugin(t *testing.T) {
	parser, err := standard.Parser()
	if err != nil {
		t.Fatal(err)
	}
	s, err := parser.Parse("rotate.yaml", []byte(`apiVersion: kmsharness.io/v1alpha1
kind: Scenario
metadata: {name: rotate, title: "A rotation needs no plugin.", area: plugin}
spec:
  topology: {controlPlanes: 1}
  steps:
  - kill: {role: plugin, node: cp-1}
  - rotate: {}
  - start: {role: plugin, node: cp-1}
  - expect: report["cp-1"]["1"].status == "healthy" && report["cp-1"]["1"].fresh
    within: recovery
`))
	if err != nil {
		t.Fatal(err)
	}
	r := engine.Execute(t.Context(), virtual.New(virtual.Options{}), s, engine.Execution{Out: t.TempDir(), Options: engine.Options{Faults: standard.Faults{}, Seed: 1}})
	if r.Status != result.Passed {
		t.Errorf("%s: %v %+v", r.Status, r.Reasons, r.Failures)
	}
}
