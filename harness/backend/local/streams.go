package local

import (
	"fmt"

	"github.com/kmsharness/kmsharness/harness/netfault"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

// streams are where the replicas of an aggregator serve the streams of reporters, and the links of nodes to them: one to each, which fail together. The
// zero value is for reporters that do not stream.
type streams struct {
	links
	ground    Ground
	addresses []string // by replica
}

// open gets the addresses.
func (s *streams) open(on Ground, name string) error {
	s.ground = on
	for i := range scenario.MaxAggregators {
		a, err := on.Port(fmt.Sprintf("aggregator-%d%s", i+1, name))
		if err != nil {
			return fmt.Errorf("streams of an aggregator: %w", err)
		}
		s.addresses = append(s.addresses, a)
	}
	return nil
}

// address is that of the i-th replica, from 1; empty where reporters do not stream.
func (s *streams) address(i int) string {
	if len(s.addresses) == 0 {
		return ""
	}
	return s.addresses[i-1]
}

// join makes the links of a node, and gives their addresses.
func (s *streams) join(node string) (addresses []string, err error) {
	for i, to := range s.addresses {
		name := fmt.Sprintf("reporter of %s to aggregator %d", node, i+1)
		link, err := netfault.NewLink(s.ground.LinkHost(name), name, to)
		if err != nil {
			return nil, err
		}
		s.add(node, link)
		addresses = append(addresses, link.Addr())
	}
	return addresses, nil
}
