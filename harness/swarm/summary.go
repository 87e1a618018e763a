package swarm

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kmsharness/kmsharness/harness/check"
	"github.com/kmsharness/kmsharness/harness/result"
	"github.com/kmsharness/kmsharness/internal/atomicfile"
	"github.com/kmsharness/kmsharness/internal/input"
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

// Merge is the summary of all shards of one run. It is an error if they are not of one run, or if a seed was simulated twice: it
// would be counted twice. Seeds that are missing are told by Missing.
func Merge(shards []*Summary) (*Summary, error) {
	if len(shards) == 0 {
		return nil, fmt.Errorf("merge: no summary, expected at least one")
	}
	all := NewSummary(shards[0].Wanted, shards[0].Settings)
	for i, s := range shards {
		switch {
		case s.Wanted != all.Wanted:
			return nil, fmt.Errorf("merge: summary %d is of seeds %v, the first of %v: expected shards of one run", i+1, s.Wanted, all.Wanted)
		case !maps.Equal(s.Settings, all.Settings):
			return nil, fmt.Errorf("merge: summary %d was simulated with %v, the first with %v: expected the same", i+1, s.Settings, all.Settings)
		}
		if twice, ok := overlap(all.Done, s.Done); ok {
			return nil, fmt.Errorf("merge: seeds %v stand in more than one summary, also in number %d: expected each once", twice, i+1)
		}
		all.take(s)
	}
	return all, nil
}

// take adds up what is counted. Shards ran at the same time, so that of their wall times the longest counts.
func (s *Summary) take(o *Summary) {
	s.Done = joined(append(s.Done, o.Done...))
	s.Seeds += o.Seeds
	s.Passed += o.Passed
	s.Events += o.Events
	s.VirtualSeconds += o.VirtualSeconds
	s.WallSeconds = max(s.WallSeconds, o.WallSeconds)
	s.Hash = s.Hash.And(o.Hash)
	s.Failed = append(s.Failed, o.Failed...)
	slices.SortFunc(s.Failed, func(a, b Failed) int { return cmp.Compare(a.Seed, b.Seed) })
	for id, c := range o.Invariants {
		was := s.Invariants[id]
		s.Invariants[id] = Count{was.Seeds + c.Seeds, was.Judged + c.Judged, was.Violated + c.Violated}
	}
	for kind, seeds := range o.Faults {
		s.Faults[kind] += seeds
	}
	for kind, of := range o.Pairs {
		if s.Pairs[kind] == nil {
			s.Pairs[kind] = map[string]Pair{}
		}
		for id, p := range of {
			was := s.Pairs[kind][id]
			s.Pairs[kind][id] = Pair{was.Seeds + p.Seeds, was.Judged + p.Judged}
		}
	}
}

// SummaryFile is a summary for programs, below the output directory.
const SummaryFile = "summary.json"

// maxSummaryBytes bounds what is read: a thousand failed seeds are a megabyte.
const maxSummaryBytes = 256 << 20

func (s *Summary) Save(dir string) error {
	if err := atomicfile.WriteJSON(filepath.Join(dir, SummaryFile), s, 0o644); err != nil {
		return fmt.Errorf("save the summary: %w", err)
	}
	return nil
}

// Load reads a summary: a file, or summary.json in a directory.
func Load(path string) (*Summary, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		path = filepath.Join(path, SummaryFile)
	}
	s := &Summary{}
	if err := input.JSON(path, "a summary", maxSummaryBytes, s); err != nil {
		return nil, fmt.Errorf("read a summary: %w", err)
	}
	if err := s.validate(); err != nil {
		return nil, fmt.Errorf("read the summary %s: %w", path, err)
	}
	return s, nil
}

func (s *Summary) validate() error {
	if s.Schema != Schema {
		return fmt.Errorf("its schema is %q, expected %q", s.Schema, Schema)
	}
	done := int64(0)
	for _, r := range s.Done {
		done += r.To - r.From + 1
	}
	if done != int64(s.Seeds) || len(joined(slices.Clone(s.Done))) != len(s.Done) {
		return errors.New("the seeds that it lists are not as many as it counts: it was changed, or cut off")
	}
	return nil
}

// Hash is one of the histories of many seeds: the sum of what each adds, so that neither the order nor the shards matter. The empty
// one is of no seed. It tells runs apart that differ by chance or mistake, not by intent.
type Hash string

const hashPrefix = "sha256:"

// With is the hash of one history more.
func (h Hash) With(seed int64, history [sha256.Size]byte) Hash {
	var line [8 + sha256.Size]byte
	binary.BigEndian.PutUint64(line[:8], uint64(seed))
	copy(line[8:], history[:])
	sum := sha256.Sum256(line[:])
	return hashOf(new(big.Int).Add(h.number(), new(big.Int).SetBytes(sum[:])))
}

// And is the hash of the seeds of both.
func (h Hash) And(o Hash) Hash { return hashOf(new(big.Int).Add(h.number(), o.number())) }

func hashOf(n *big.Int) Hash {
	n.Mod(n, new(big.Int).Lsh(big.NewInt(1), 8*sha256.Size))
	return Hash(fmt.Sprintf("%s%064x", hashPrefix, n))
}

func (h Hash) number() *big.Int {
	n, ok := new(big.Int).SetString(strings.TrimPrefix(string(h), hashPrefix), 16)
	if !ok {
		return new(big.Int)
	}
	return n
}
