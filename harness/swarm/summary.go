package swarm

import (
	"cmp"
	"maps"
	"slices"
	"time"

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
	s.Seeds++
	s.Done = with(s.Done, one.Seed)
	s.Events += one.Verdict.Events
	s.VirtualSeconds += one.Verdict.Duration.Seconds()
	s.Hash = s.Hash.With(one.Seed, one.Hash)
	kinds := map[string]bool{}
	for _, i := range one.Verdict.Invariants {
		s.Invariants[i.ID] = s.Invariants[i.ID].with(i)
		for kind, judged := range i.During {
			kinds[kind] = true
			s.pair(kind, i.ID, Pair{1, judged})
		}
	}
	for kind := range kinds {
		s.Faults[kind]++
	}
	if one.Result.Status == result.Passed {
		s.Passed++
		return
	}
	s.fail(Failed{Seed: one.Seed, Status: one.Result.Status, Violated: violated(one.Result), Scenario: one.File, Dir: one.Result.Dir,
		Reproduce: one.Result.Reproduce, text: one.Result.Text()})
}

func (s *Summary) fail(f Failed) {
	s.Failed = append(s.Failed, f)
	slices.SortFunc(s.Failed, func(a, b Failed) int { return cmp.Compare(a.Seed, b.Seed) })
}

func (s *Summary) pair(kind, invariant string, p Pair) {
	if s.Pairs[kind] == nil {
		s.Pairs[kind] = map[string]Pair{}
	}
	was := s.Pairs[kind][invariant]
	s.Pairs[kind][invariant] = Pair{was.Seeds + p.Seeds, was.Judged + p.Judged}
}

func (c Count) with(r check.Result) Count {
	c.Judged += r.Judged
	if r.Judged > 0 {
		c.Seeds++
	}
	if r.Status == check.Failed {
		c.Violated++
	}
	return c
}

// violated are the ids of what failed, each once.
func violated(r result.Result) []string {
	ids := map[string]bool{}
	for _, f := range r.Failures {
		ids[f.ID] = true
	}
	return slices.Sorted(maps.Keys(ids))
}

// Took ends the summary of a run.
func (s *Summary) Took(d time.Duration) { s.WallSeconds = d.Seconds() }
