package check

import "slices"

// House rules that parts of invariants rest on: decisions of this project, marked "[decided here]" in the contract, where the sources are silent. A
// program of somebody else that breaks one of them breaks no promise.
const (
	houseUnusable  = "an ok with a key_id that cannot be used, or with another version, is unhealthy"
	houseTries     = "whatever a write is refused with, the next try is that of the next interval"
	houseRemoval   = "a reporter that ends leaves its entry, which the aggregator removes once nobody needs it"
	houseReasons   = "the reasons of the rollups, and which of several is shown"
	houseBound     = "the message of a rollup has at most 4096 characters"
	houseAttempt   = "an attempt to encrypt everything anew ends when a node no longer agrees on the kekID"
	houseRestraint = "an aggregator that is refused asks at most ten times in a second, and keeps to Retry-After"
)

// takeHouse takes the violations of house rules out of a finding.
func (f *Finding) takeHouse() (house []Violation) {
	for _, x := range f.Violations {
		if x.House != "" {
			house = append(house, x)
		}
	}
	f.Violations = slices.DeleteFunc(slices.Clone(f.Violations), func(x Violation) bool { return x.House != "" })
	f.Count -= len(house)
	return house
}
