package swarm_test

import (
	"bytes"
	"reflect"
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/cluster/virtual"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/harness/scenario/standard"
	"github.com/kmsharness/kmsharness/harness/swarm"
)

// drawn is the scenario of a seed, which is valid, the same each time, and what its file says.
func drawn(t *testing.T, parser *scenario.Parser, p swarm.Plan, seed int64) *scenario.Scenario {
	t.Helper()
	s, text := p.Scenario(seed), file(t, p, seed)
	if !bytes.Equal(text, file(t, p, seed)) {
		t.Fatalf("%+v: seed %d gives two files", p, seed)
	}
	parsed, err := parser.Parse(s.File, text)
	if err != nil {
		t.Fatalf("%+v: seed %d: %v\n%.10000s", p, seed, err, text)
	}
	parsed.Steps = withoutPositions(parsed.Steps)
	if !reflect.DeepEqual(parsed, s) {
		t.Fatalf("%+v: seed %d is not what its file says\n%.10000s", p, seed, text)
	}
	return s
}

func file(t *testing.T, p swarm.Plan, seed int64) []byte {
	t.Helper()
	text, err := p.Scenario(seed).Encode()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func withoutPositions(steps []scenario.Step) []scenario.Step {
	for i := range steps {
		steps[i].Pos = scenario.Position{}
		withoutPositions(steps[i].Parallel)
		if steps[i].Repeat != nil {
			withoutPositions(steps[i].Repeat.Steps)
		}
	}
	return steps
}

func parser(t *testing.T) *scenario.Parser {
	t.Helper()
	parser, err := standard.Parser()
	if err != nil {
		t.Fatal(err)
	}
	return parser
}

func TestDraw(t *testing.T) {
	seeds := int64(500)
	if testing.Short() {
		seeds = 20
	}
	p := parser(t)
	for _, plan := range []swarm.Plan{{}, {Streams: true}, {Contract: scenario.ContractConditions}, {Contract: scenario.ContractHealthReports}} {
		for seed := range seeds {
			drawn(t, p, plan, seed)
		}
	}
	for seed := range seeds / 5 {
		drawn(t, p, swarm.Plan{Length: time.Hour, Timing: contract.DefaultTiming()}, seed)
	}
}

// Only what sim can pause is paused, and some of it is.
func TestDrawPauses(t *testing.T) {
	paused := map[string]int{}
	for seed := range int64(500) {
		for _, a := range (swarm.Plan{}).Scenario(seed).Actions() {
			if scenario.VerbOf(a) == scenario.VerbPause {
				paused[scenario.Selected(a).Role]++
			}
		}
	}
	for role := range paused {
		if !virtual.Pausable(role) {
			t.Errorf("%s is paused %d times, which sim cannot do", role, paused[role])
		}
	}
	if paused[history.RoleEtcd] == 0 || paused[history.RolePlugin] == 0 {
		t.Errorf("%v, expected etcd and plugins to be paused", paused)
	}
}
