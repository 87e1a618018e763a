package shrink_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/harness/scenario/standard"
	"github.com/kmsharness/kmsharness/harness/swarm"
	"github.com/kmsharness/kmsharness/harness/swarm/shrink"
)

// What is needed stays, wherever it stands, and nothing else does.
func TestList(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 1))
		list := rng.Perm(1 + rng.IntN(60))
		needed := list[:rng.IntN(min(len(list), 4)+1)]
		rng.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		has := func(l []int) bool {
			return !slices.ContainsFunc(slices.Clone(needed), func(n int) bool { return !slices.Contains(l, n) })
		}
		needed = slices.Clone(needed)
		if got := shrink.List(list, has); len(got) != len(needed) || !has(got) {
			t.Fatalf("seed %d: %v, expected %v", seed, got, needed)
		}
	}
}

// Steps that make sense together only are taken out together.
func TestListTakesOutWhatBelongsTogether(t *testing.T) {
	balanced := func(l []string) bool {
		open := 0
		for _, s := range l {
			open += strings.Count(s, "(") - strings.Count(s, ")")
			if open < 0 {
				return false
			}
		}
		return open == 0 && slices.Contains(l, "x")
	}
	if got := shrink.List(strings.Fields("( a ) ( b ) x ( c d )"), balanced); !slices.Equal(got, []string{"x"}) {
		t.Errorf("%v, expected x", got)
	}
}

func TestBounded(t *testing.T) {
	asked := 0
	fails := shrink.Bounded(func([]int) bool { asked++; return true }, 3)
	for range 3 {
		if !fails(nil) {
			t.Error("it does not fail, although it may be asked")
		}
	}
	if got := shrink.List([]int{1, 2, 3}, fails); asked != 3 || len(got) != 3 {
		t.Errorf("asked %d times, expected 3; %v is left, expected all", asked, got)
	}
}

func parse(t *testing.T, name string, text []byte) *scenario.Scenario {
	t.Helper()
	parser, err := standard.Parser()
	if err != nil {
		t.Fatal(err)
	}
	s, err := parser.Parse(name+".yaml", text)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return s
}

func timing() contract.Timing { return contract.DefaultTiming() }

// A drawn scenario shrinks to the one step that is to blame, on a cluster that is no larger than it must be.
func TestScenario(t *testing.T) {
	asked := 0
	for seed := range int64(40) {
		s := swarm.Plan{}.Scenario(seed)
		culprit := s.Actions()[0]
		fails := func(c *scenario.Scenario) bool {
			asked++
			return slices.ContainsFunc(c.Actions(), func(a scenario.Action) bool {
				return scenario.VerbOf(a) == scenario.VerbOf(culprit) && scenario.Harm(a) == scenario.Harm(culprit)
			})
		}
		small := shrink.Scenario(s, timing(), fails)
		want := shrink.Measure{Steps: 1, Nodes: 1, Aggregators: 1, Plugins: 1, Waits: ";"}
		if got := shrink.Size(small); got != want {
			text, _ := small.Encode()
			t.Errorf("seed %d: %+v, expected %+v\n%s", seed, got, want, text)
		}
		if before := (swarm.Plan{}).Scenario(seed); shrink.Size(before) != shrink.Size(s) {
			t.Errorf("seed %d: the scenario itself was changed", seed)
		}
	}
	t.Logf("asked %d times for 40 scenarios", asked)
}

// A wait that is needed becomes as short as will do, and nodes get the first names.
func TestWaitsAndNames(t *testing.T) {
	text := `apiVersion: kmsharness.io/v1alpha1
kind: Scenario
metadata: {name: waits, title: A test., area: scale}
spec:
  topology: {controlPlanes: 5}
  steps:
  - parallel:
    - repeat:
        times: 3
        steps:
        - kill: {role: reporter, node: cp-4}
        - wait: 7I + 321ms
        - start: {role: reporter, node: cp-4}
    - wait: 9I + 5ms
  - expect: report["cp-4"]["1"].fresh
    within: recovery
`
	s := parse(t, "waits", []byte(text))
	fails := func(c *scenario.Scenario) bool {
		killed, waited, expected := "", 0.0, ""
		scenario.Walk(c.Steps, func(step scenario.Step) {
			switch {
			case step.Action != nil && scenario.VerbOf(step.Action) == scenario.VerbKill:
				killed = scenario.Selected(step.Action).Node
			case killed != "" && !step.Wait.IsZero():
				d, _ := step.Wait.Resolve(timing())
				waited = max(waited, d.Seconds()/timing().Interval.Seconds())
			case step.Expect != nil:
				expected = step.Expect.CEL
			}
		})
		return waited >= 5 && strings.Contains(expected, fmt.Sprintf("%q", killed))
	}
	small, err := shrink.Scenario(s, timing(), fails).Encode()
	if err != nil {
		t.Fatal(err)
	}
	want := `  topology: {controlPlanes: 1, keyIDs: ["1"], aggregators: 1}
  steps:
    - kill: {role: reporter, node: cp-1}
    - wait: 5I
    - expect: report["cp-1"]["1"].fresh
      within: recovery
`
	if !strings.HasSuffix(string(small), want) {
		t.Errorf("got\n%s\nexpected at its end\n%s", small, want)
	}
}
