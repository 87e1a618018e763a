package sim_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"go.uber.org/goleak"
	"k8s.io/utils/clock"

	"github.com/kmsharness/kmsharness/harness/backend/sim"
	"github.com/kmsharness/kmsharness/harness/backend/sim/store"
	"github.com/kmsharness/kmsharness/harness/engine"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/result"
	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/harness/scenario/standard"
)

// seeds is how many more seeds TestMoreSeeds runs each scenario with.
var seeds = flag.Int("seeds", 0, "seeds of TestMoreSeeds")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func catalogue(t *testing.T) []*scenario.Scenario {
	t.Helper()
	parser, err := standard.Parser()
	if err != nil {
		t.Fatal(err)
	}
	all, err := parser.Load("../../../scenarios/catalogue")
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// simulate runs a scenario and gives its result and history.
func simulate(t *testing.T, b *sim.Backend, s *scenario.Scenario, seed int64) (result.Result, []byte) {
	t.Helper()
	out := t.TempDir()
	r := engine.Execute(context.Background(), b, s, engine.Execution{Out: out, Options: engine.Options{
		Runtime: engine.RealTime(clock.RealClock{}), Faults: standard.Faults{}, Seed: seed, Reproduce: "a test"}})
	history, err := os.ReadFile(filepath.Join(out, s.Name, result.HistoryFile))
	if err != nil && r.Status != result.NotSupported {
		t.Fatal(err)
	}
	return r, history
}

// Every scenario passes whatever the seed: go test -run TestMoreSeeds ./harness/backend/sim -args -seeds 100.
func TestMoreSeeds(t *testing.T) {
	b := sim.New(sim.Options{SSA: store.Model})
	for _, s := range catalogue(t) {
		t.Run(s.Name, func(t *testing.T) {
			for seed := range *seeds {
				pass(t, b, s, int64(seed+3)) // two others are TestCatalogue's
			}
		})
	}
}

// pass simulates a scenario that must pass, and gives its history.
func pass(t *testing.T, b *sim.Backend, s *scenario.Scenario, seed int64) []byte {
	t.Helper()
	r, history := simulate(t, b, s, seed)
	if r.Status != result.Passed {
		t.Errorf("seed %d: %s", seed, r.Text())
	}
	return history
}

// What a simulation found once stays mended.
func TestFound(t *testing.T) {
	for _, found := range []struct {
		scenario, what string
		seeds          []int64
	}{
		{"foreign-conditions-are-left-alone", "the ClusterOperator got the union of a new rollup and a condition that was gone by then", []int64{13, 44}},
	} {
		all := catalogue(t)
		i := slices.IndexFunc(all, func(s *scenario.Scenario) bool { return s.Name == found.scenario })
		for _, seed := range found.seeds {
			t.Log(found.what)
			pass(t, sim.New(sim.Options{}), all[i], seed)
		}
	}
}

// What a swarm found, with the seed that found it.
func TestFoundByTheSwarm(t *testing.T) {
	parser, err := standard.Parser()
	if err != nil {
		t.Fatal(err)
	}
	all, err := parser.Load("testdata/found")
	if err != nil {
		t.Fatal(err)
	}
	seeds := map[string]int64{
		"kms-disabled-while-a-reporter-writes": 761, // the ClusterOperator was told of a removal that had failed
	}
	for _, s := range all {
		pass(t, sim.New(sim.Options{SSA: store.Model}), s, seeds[s.Name])
	}
}

// some returns the scenarios that the simulator supports, and one in ten of the smaller ones under -short: make simulations runs all of them. The
// test of README's numbers counts those that it does not support.
func some(all []*scenario.Scenario) []*scenario.Scenario {
	b := sim.New(sim.Options{})
	all = slices.DeleteFunc(all, func(s *scenario.Scenario) bool { return len(b.Unsupported(s)) > 0 })
	if !testing.Short() {
		return all
	}
	var out []*scenario.Scenario
	for i, s := range all {
		if i%10 == 0 && !s.Topology.ByOperator() && len(s.Topology.Aggregated()) == 0 {
			out = append(out, s)
		}
	}
	return out
}

// Every scenario that passes on real control planes passes here. The same seed gives the same history, byte for byte, whichever
// code merges; another seed gives another one.
func TestCatalogue(t *testing.T) {
	byRules, byModel := sim.New(sim.Options{SSA: store.Real}), sim.New(sim.Options{SSA: store.Model})
	for _, s := range some(catalogue(t)) {
		t.Run(s.Name, func(t *testing.T) {
			first := pass(t, byRules, s, 1)
			if again := pass(t, byModel, s, 1); !bytes.Equal(first, again) {
				t.Error(difference(first, again))
			}
			if other := pass(t, byModel, s, 2); bytes.Equal(first, other) {
				t.Error("the seed does not matter")
			}
			sum := sha256.Sum256(first)
			t.Logf("%s %s", s.Name, hex.EncodeToString(sum[:]))
		})
	}
}

// Every scenario that is not about the other wire form passes when reporters write typed reports.
func TestCatalogueInTheTypedForm(t *testing.T) {
	all, err := scenario.InForms(some(catalogue(t)), scenario.ContractHealthReports)
	if err != nil {
		t.Fatal(err)
	}
	b := sim.New(sim.Options{SSA: store.Model})
	for _, s := range all {
		if s.AnyContract {
			t.Run(s.Name, func(t *testing.T) {
				t.Parallel()
				pass(t, b, s, 1)
			})
		}
	}
}

// Every scenario that names no connectivity passes with reporters that stream, in both wire forms.
func TestCatalogueOfStreams(t *testing.T) {
	b := sim.New(sim.Options{SSA: store.Model})
	for _, form := range scenario.Contracts() {
		all, err := scenario.InForms(some(catalogue(t)), form)
		if err == nil {
			all, err = scenario.Published(all, scenario.PublishStream)
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range all {
			if s.Topology.Connectivity == history.ConnectStream && (s.AnyContract || form == scenario.ContractConditions) {
				t.Run(form+"/"+s.Name, func(t *testing.T) {
					t.Parallel()
					pass(t, b, s, 1)
				})
			}
		}
	}
}

// Every scenario about kube-apiserver passes with other API servers beside it as well: they are in nobody's way. With an operator the
// steps do not wait for the others', and the end may find one of those at work. A quarter of them is tried, with -seeds 1 all.
func TestCatalogueBesideOtherAPIServers(t *testing.T) {
	b := sim.New(sim.Options{SSA: store.Model})
	fit := 0
	for _, s := range catalogue(t) {
		if s.Topology.ByOperator() || s.Operator != scenario.Operators()[0] || len(s.Topology.Aggregated()) > 0 {
			continue
		}
		s.Topology.APIServers = scenario.APIServers()
		if len(b.Unsupported(s)) > 0 {
			continue
		}
		if fit++; fit%4 == 1 && !testing.Short() || fit == 1 || *seeds > 0 {
			t.Run(s.Name, func(t *testing.T) { pass(t, b, s, 1) })
		}
	}
	if fit < 50 {
		t.Errorf("%d scenarios can be tried with other API servers, expected more", fit)
	}
}

// difference is the first line that differs.
func difference(a, b []byte) string {
	x, y := bytes.Split(a, []byte("\n")), bytes.Split(b, []byte("\n"))
	for i := range min(len(x), len(y)) {
		if !bytes.Equal(x[i], y[i]) {
			return fmt.Sprintf("line %d:\n%s\n%s", i+1, x[i], y[i])
		}
	}
	return fmt.Sprintf("%d and %d lines", len(x), len(y))
}

// The scenarios about inertia name real minutes: they pass with the interval of production, too.
func TestInertiaInProduction(t *testing.T) {
	b := sim.New(sim.Options{SSA: store.Model, Timing: sim.ProductionTiming()})
	tried := 0
	for _, s := range catalogue(t) {
		if len(s.ClusterOperator.DegradedInertia) > 0 {
			tried++
			t.Run(s.Name, func(t *testing.T) {
				for seed := range int64(3 + *seeds) {
					pass(t, b, s, seed+1)
				}
			})
		}
	}
	if tried < 2 {
		t.Errorf("%d scenarios have inertia, expected more", tried)
	}
}
