package swarm

import (
	"crypto/sha256"
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/kmsharness/kmsharness/harness/check"
	"github.com/kmsharness/kmsharness/harness/report"
)

// Summary is what came of many seeds.
type Summary struct {
	Seeds, Events int
	Virtual       time.Duration
	Failed        []Seed // by seed
	invariants    map[string]count
	hashes        map[int64][sha256.Size]byte
}

// count is how often an invariant was judged, and violated.
type count struct{ seeds, judged, violated int }

// Add takes a seed in.
func (s *Summary) Add(one Seed) {
	if s.invariants == nil {
		s.invariants, s.hashes = map[string]count{}, map[int64][sha256.Size]byte{}
	}
	s.Seeds++
	s.Events += one.Verdict.Events
	s.Virtual += one.Verdict.Duration
	s.hashes[one.Seed] = one.Hash
	for _, i := range one.Verdict.Invariants {
		c := s.invariants[i.ID]
		c.judged += i.Judged
		if i.Judged > 0 {
			c.seeds++
		}
		if i.Status == check.Failed {
			c.violated++
		}
		s.invariants[i.ID] = c
	}
	if one.Result.Status != report.Passed {
		s.Failed = append(s.Failed, one)
		slices.SortFunc(s.Failed, func(a, b Seed) int { return int(a.Seed - b.Seed) })
	}
}

// Hash is one of all histories: it does not depend on the order in which seeds were simulated.
func (s *Summary) Hash() string {
	h := sha256.New()
	for _, seed := range slices.Sorted(maps.Keys(s.hashes)) {
		sum := s.hashes[seed]
		_, _ = h.Write(sum[:]) // a hash never fails
	}
	return fmt.Sprintf("sha256:%x", h.Sum(nil))
}

// Write prints what failed, how often each invariant was judged (one that no seed reached is a hole), and the numbers.
func (s *Summary) Write(w io.Writer, took time.Duration) error {
	for _, f := range s.Failed {
		fmt.Fprintf(w, "\n%s\n  scenario:  %s\n", f.Result.Text(), f.File)
	}
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "\nINVARIANT\tSEEDS\tJUDGED\tVIOLATED")
	for _, i := range check.Invariants() {
		c := s.invariants[i.ID]
		hole := ""
		if c.seeds == 0 {
			hole = "\tno seed reached it"
		}
		fmt.Fprintf(t, "%s\t%d\t%d\t%d%s\n", i.ID, c.seeds, c.judged, c.violated, hole)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	speed := s.Virtual.Seconds() / took.Seconds()
	_, err := fmt.Fprintf(w, "\nsimulate: %d of %d seeds passed; %v of virtual time in %v (%.0f times real time), %d events, histories %s\n",
		s.Seeds-len(s.Failed), s.Seeds, s.Virtual.Round(time.Second), took.Round(100*time.Millisecond), speed, s.Events, s.Hash())
	return err
}
