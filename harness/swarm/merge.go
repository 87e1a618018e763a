package swarm

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
)

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
