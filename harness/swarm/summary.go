package swarm

import (
	"maps"
	"slices"

	"github.com/kmsharness/kmsharness/harness/check"
	"github.com/kmsharness/kmsharness/harness/result"
)

// Schema names the form of summary.json.
const Schema = "kmsharness.io/swarm/v1"

// Summary is what came of many seeds. Saved as summary.json it is what other programs read: names that are in it stay.
type Summary struct {
	Schema string `json:"schema"`
	// Settings are what else decides what a seed gives; summaries with different ones cannot be merged.
	Settings map[string]string `json:"settings,omitempty"`
	// Wanted are the seeds that were asked for, of all shards; Done are those that were simulated.
	Wanted Range   `json:"wanted"`
	Done   []Range `json:"done"`

	Seeds  int      `json:"seeds"`
	Passed int      `json:"passed"`
	Failed []Failed `json:"failed"` // by seed
	Events int      `json:"events"`
	// VirtualSeconds were simulated in WallSeconds; merged, the time of the slowest shard.
	VirtualSeconds float64 `json:"virtualSeconds"`
	WallSeconds    float64 `json:"wallSeconds"`
	// Hash is one of all histories, whatever the order and the shards.
	Hash Hash `json:"hash"`

	Invariants map[string]Count `json:"invariants"`
	// Faults is in how many seeds a fault of each kind was in force, Pairs what was judged while or shortly after it was, by
	// invariant. A kind that no seed drew has zero.
	Faults map[string]int             `json:"faults"`
	Pairs  map[string]map[string]Pair `json:"pairs"`
}

// Count is how often an invariant was judged, and in how many seeds it was judged and violated.
type Count struct {
	Seeds    int `json:"seeds"`
	Judged   int `json:"judged"`
	Violated int `json:"violated"`
}

// Pair is how often an invariant was judged under one kind of fault.
type Pair struct {
	Seeds  int `json:"seeds"`
	Judged int `json:"judged"`
}

// Failed is a seed that did not pass.
type Failed struct {
	Seed   int64         `json:"seed"`
	Status result.Status `json:"status"`
	// Violated are the ids of invariants, and the places of expectations and actions that failed.
	Violated  []string `json:"violated"`
	Scenario  string   `json:"scenario,omitempty"`
	Dir       string   `json:"dir,omitempty"`
	Reproduce string   `json:"reproduce,omitempty"`
	// Shrunk is the file with the shortest timeline that still fails in the same way, and Steps how many it has.
	Shrunk string `json:"shrunk,omitempty"`
	Steps  int    `json:"steps,omitempty"`

	text string // for people
}

// NewSummary of nothing yet.
func NewSummary(wanted Range, settings map[string]string) *Summary {
	s := &Summary{Schema: Schema, Settings: settings, Wanted: wanted, Done: []Range{}, Failed: []Failed{},
		Invariants: map[string]Count{}, Faults: map[string]int{}, Pairs: map[string]map[string]Pair{}}
	for _, kind := range Kinds() {
		s.Faults[kind] = 0
	}
	return s
}

// Add takes a seed in.
func (s *Summary) Add(one Seed) {
	own := Summary{Done: []Range{{one.Seed, one.Seed}}, Seeds: 1, Events: one.Verdict.Events, VirtualSeconds: one.Verdict.Duration.Seconds(), Hash: Hash("").With(one.Seed, one.Hash),
		Invariants: map[string]Count{}, Faults: map[string]int{}, Pairs: map[string]map[string]Pair{}}
	for _, i := range one.Verdict.Invariants {
		own.Invariants[i.ID] = Count{min(i.Judged, 1), i.Judged, map[bool]int{true: 1}[i.Status == check.Failed]}
		for kind, judged := range i.During {
			own.Faults[kind] = 1
			if own.Pairs[kind] == nil {
				own.Pairs[kind] = map[string]Pair{}
			}
			own.Pairs[kind][i.ID] = Pair{1, judged}
		}
	}
	if one.Result.Status == result.Passed {
		own.Passed = 1
	} else {
		own.Failed = []Failed{{Seed: one.Seed, Status: one.Result.Status, Violated: violated(one.Result), Scenario: one.File, Dir: one.Result.Dir,
			Reproduce: one.Result.Reproduce, text: one.Result.Text()}}
	}
	s.take(&own)
}

func violated(r result.Result) []string {
	ids := map[string]bool{}
	for _, f := range r.Failures {
		ids[f.ID] = true
	}
	return slices.Sorted(maps.Keys(ids))
}
