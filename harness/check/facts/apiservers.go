package facts

import (
	"github.com/kmsharness/kmsharness/harness/check/span"
	"github.com/kmsharness/kmsharness/harness/history"
)

// APIServers tells when API servers could be reached, and could serve a write.
type APIServers struct {
	processes *Processes
	network   *Network
	bounds    Bounds
}

// Fine is when the API server of a node could serve a write. Where etcd has a member on every node, an API server uses that of
// its own; whether enough of the others are there for a write shows in the link to it (harness/record/canary).
func (s *APIServers) Fine(node string) span.Set {
	ps := s.processes
	etcd := ps.every(history.RoleEtcd, func(p Process) span.Set {
		if p.Node == "" || p.Node == node || node == "" {
			return ps.While(p, Up)
		}
		return span.Set{ps.period}
	})
	links := s.network.fineOn(node, history.RoleAPIServer)
	return ps.UpOrUnmentioned(Process{Role: history.RoleAPIServer, Node: node}).Intersect(etcd).Intersect(links)
}

func (s *APIServers) fine(p Process) span.Set { return s.Fine(p.Node) }

// ServiceFine is when every API server behind the load balancer was fine: which of them a connection reaches is not known.
func (s *APIServers) ServiceFine() span.Set {
	links := s.network.FineFrom(history.RoleLoadBalancer)
	return s.balancerFine().Intersect(links).Intersect(s.processes.every(history.RoleAPIServer, s.fine))
}

func (s *APIServers) balancerFine() span.Set {
	return s.processes.every(history.RoleLoadBalancer, func(p Process) span.Set { return s.processes.While(p, Up) })
}

// anyFine is when at least one API server could be reached through the load balancer.
func (s *APIServers) anyFine() span.Set {
	if len(s.processes.OfRole(history.RoleAPIServer)) == 0 {
		return s.balancerFine().Intersect(s.Fine(""))
	}
	return s.balancerFine().Intersect(s.processes.some(history.RoleAPIServer, func(p Process) span.Set {
		return s.fine(p).Intersect(s.network.fineOn(p.Node, history.RoleLoadBalancer))
	}))
}

// someFine is when at least one API server could serve a write.
func (s *APIServers) someFine() span.Set { return s.processes.some(history.RoleAPIServer, s.fine) }

// failedOver is when a client that knows the API servers reached one of them. Each that is gone or stands still costs it a write, and the
// next one goes to another. One that runs and cannot serve it does not: why an answer is none, or an error, a client cannot know.
func (s *APIServers) failedOver() span.Set {
	return s.someFine().Intersect(s.processes.every(history.RoleAPIServer, func(p Process) span.Set {
		return s.fine(p).Union(s.processes.While(p, Down, Starting, Paused).Settled(s.bounds.attempt()))
	}))
}
