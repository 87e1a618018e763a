package local

import (
	"errors"
	"fmt"
	"sync"

	"github.com/kmsharness/kmsharness/harness/netfault"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

// streams are where the replicas of an aggregator serve the streams of reporters, and the links of nodes to them: one to each, which fail together.
type streams struct {
	ground    Ground
	addresses []string // by replica

	mu    sync.Mutex
	links map[string][]*netfault.Link // by node
}

func newStreams(on Ground, name string) (*streams, error) {
	s := &streams{ground: on, links: map[string][]*netfault.Link{}}
	for i := range scenario.MaxAggregators {
		a, err := on.Port(fmt.Sprintf("aggregator-%d%s", i+1, name))
		if err != nil {
			return nil, fmt.Errorf("streams of an aggregator: %w", err)
		}
		s.addresses = append(s.addresses, a)
	}
	return s, nil
}

// address is that of the i-th replica, from 1; empty where reporters do not stream.
func (s *streams) address(i int) string {
	if s == nil {
		return ""
	}
	return s.addresses[i-1]
}

// join makes the links of a node, and gives their addresses.
func (s *streams) join(node string) (addresses []string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, to := range s.addresses {
		name := fmt.Sprintf("reporter of %s to aggregator %d", node, i+1)
		link, err := netfault.NewLink(s.ground.LinkHost(name), name, to)
		if err != nil {
			return nil, err
		}
		s.links[node] = append(s.links[node], link)
		addresses = append(addresses, link.Addr())
	}
	return addresses, nil
}

func (s *streams) set(node string, f netfault.Fault) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, l := range s.links[node] {
		errs = append(errs, l.Set(f))
	}
	return errors.Join(errs...)
}

func (s *streams) leave(node string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, l := range s.links[node] {
		errs = append(errs, l.Close())
	}
	delete(s.links, node)
	return errors.Join(errs...)
}

func (s *streams) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, links := range s.links {
		for _, l := range links {
			errs = append(errs, l.Close())
		}
	}
	return errors.Join(errs...)
}
