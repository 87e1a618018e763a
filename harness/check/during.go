package check

import (
	"sort"

	"github.com/kmsharness/kmsharness/harness/check/facts"
	"github.com/kmsharness/kmsharness/harness/check/invariants"
)

// exposure is when which kinds of faults were in force, or had been shortly before: until what they did to a report is stale.
type exposure map[string][]invariants.Stretch

func newExposure(v *facts.Facts) exposure {
	x := exposure{}
	for kind, windows := range v.FaultWindows() {
		for _, s := range windows {
			x[kind] = append(x[kind], invariants.Stretch{From: s.From.UnixNano(), To: s.To.UnixNano()})
		}
	}
	return x
}

// count is how many of what was judged was judged under a fault of each kind.
func (x exposure) count(judged []invariants.Stretch) map[string]int {
	out := map[string]int{}
	for kind, windows := range x {
		for _, s := range judged {
			i := sort.Search(len(windows), func(i int) bool { return windows[i].To > s.From })
			if i < len(windows) && windows[i].From <= max(s.From, s.To) {
				out[kind]++
			}
		}
	}
	if len(out) == 0 {
		return nil
	}
	return out
}
