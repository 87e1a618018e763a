package scenarios

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/kmsharness/kmsharness/harness/scenario"
)

// Alike orders scenarios so that those on the same control plane, with the same plugins and provider, follow each other: the control plane of one
// serves the next without a restart of its API servers. The larger topologies come first; the order within such scenarios stays.
func Alike(all []*scenario.Scenario, plane func(*scenario.Scenario) string) []*scenario.Scenario {
	key := func(s *scenario.Scenario) string {
		return fmt.Sprint(9-s.Topology.ControlPlanes, plane(s), s.Topology.ByOperator(), s.Topology.KeyIDs, s.Topology.Profile)
	}
	sorted := slices.Clone(all)
	slices.SortStableFunc(sorted, func(a, b *scenario.Scenario) int { return cmp.Compare(key(a), key(b)) })
	return sorted
}
