package facts

import (
	"slices"

	"github.com/kmsharness/kmsharness/harness/check/span"
	"github.com/kmsharness/kmsharness/harness/history"
)

// APIServers tells when API servers could be reached, and could serve a write.
type APIServers struct {
	processes *Processes
	network   *Network
	bounds    Bounds
}

// Fine returns the spans in which the API server of a node could serve a write. Where etcd has a member on every node,
// an API server uses that of its own (kubeadm's stacked topology, --etcd-servers=https://127.0.0.1:2379). Whether the
// other members form a quorum is not derived from their processes: the canary of harness/record/canary writes through
// each API server, and a lost quorum shows as a link.
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

// ServiceFine returns the spans in which every API server behind the load balancer was fine. kube-proxy and haproxy
// choose a backend for each connection, and a client keeps it: one bad API server can be the one that a given client
// uses.
func (s *APIServers) ServiceFine() span.Set {
	links := s.network.FineFrom(history.RoleLoadBalancer)
	return s.balancerFine().Intersect(links).Intersect(s.processes.every(history.RoleAPIServer, s.fine))
}

func (s *APIServers) balancerFine() span.Set {
	return s.processes.every(history.RoleLoadBalancer, func(p Process) span.Set { return s.processes.While(p, Up) })
}

// anyFine returns the spans in which at least one API server could be reached through the load balancer. It is enough
// for a client that reconnects after a failure, as client-go does with its next request.
func (s *APIServers) anyFine() span.Set {
	if len(s.processes.OfRole(history.RoleAPIServer)) == 0 {
		return s.balancerFine().Intersect(s.Fine(""))
	}
	return s.balancerFine().Intersect(s.processes.some(history.RoleAPIServer, func(p Process) span.Set {
		return s.fine(p).Intersect(s.network.fineOn(p.Node, history.RoleLoadBalancer))
	}))
}

// misleading returns the spans in which an API server behind the load balancer took connections and could not serve, for longer than the bound of a
// write allows anyway.
func (s *APIServers) misleading() span.Set {
	return s.processes.some(history.RoleAPIServer, func(p Process) span.Set {
		good := s.fine(p).Intersect(s.network.fineOn(p.Node, history.RoleLoadBalancer))
		unfit := s.processes.While(p, Up, Paused).Intersect(good.Complement(s.processes.period))
		return slices.DeleteFunc(unfit, func(x span.Span) bool { return x.Length() <= s.bounds.Latency() })
	})
}

// someFine returns the spans in which at least one API server could serve a write.
func (s *APIServers) someFine() span.Set { return s.processes.some(history.RoleAPIServer, s.fine) }

// failedOver returns the spans in which a client that knows all API servers reached one of them. Each one that is gone
// or paused costs the client one write, and the next write goes to another: so an API server counts again only after it
// was away for one attempt. An API server that runs but cannot serve (its etcd is gone, for example) is excluded: a
// client cannot tell why a request timed out or failed.
func (s *APIServers) failedOver() span.Set {
	return s.someFine().Intersect(s.processes.every(history.RoleAPIServer, func(p Process) span.Set {
		return s.fine(p).Union(s.processes.While(p, Down, Starting, Paused).Settled(s.bounds.attempt()))
	}))
}
