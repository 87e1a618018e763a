package check

import (
	"github.com/kmsharness/kmsharness/harness/history"
)

// connectService is the value of Run.Connectivity for reporters that go through the load balancer.
const connectService = "service"

// apiFine is when the API server of node could serve a write.
func (v *view) apiFine(node string) spans {
	fine := v.upOrUnmentioned(process{role: history.RoleAPIServer, node: node})
	for _, etcd := range v.processes(history.RoleEtcd) {
		fine = fine.and(v.in(etcd, procUp))
	}
	return fine.and(v.linkFine(func(l linkChange) bool {
		return l.from == history.RoleAPIServer && (l.node == node || l.node == "")
	}))
}

// reporterAble is when the reporter of node could write: it ran, and so did everything between it and etcd.
func (v *view) reporterAble(node string) spans {
	if able, known := v.readCaps[node]; known {
		return able
	}
	able := v.in(process{role: history.RoleReporter, node: node}, procUp).and(v.linkFine(func(l linkChange) bool {
		return l.from == history.RoleReporter && (l.node == node || l.node == "")
	}))
	if v.run.Connectivity == connectService {
		able = able.and(v.serviceFine())
	} else {
		able = able.and(v.apiFine(node))
	}
	v.readCaps[node] = able
	return able
}

// serviceFine is when every API server behind the load balancer was fine: which of them a connection reaches is not
// known.
func (v *view) serviceFine() spans {
	fine := v.balancerFine().and(v.linkFine(func(l linkChange) bool { return l.from == history.RoleLoadBalancer }))
	for _, p := range v.processes(history.RoleAPIServer) {
		fine = fine.and(v.apiFine(p.node))
	}
	return fine
}

func (v *view) balancerFine() spans {
	fine := spans{v.whole}
	for _, p := range v.processes(history.RoleLoadBalancer) {
		fine = fine.and(v.in(p, procUp))
	}
	return fine
}

// aggregatorAble is when the contract's latency may be asked of the aggregator: one ran, it had a path to an API
// server, and nothing on that path changed in the time that a takeover and one latency need.
func (v *view) aggregatorAble() spans {
	ran := spans{v.whole}
	if replicas := v.processes(history.RoleAggregator); len(replicas) > 0 {
		ran = nil
		for _, p := range replicas {
			ran = ran.or(v.in(p, procUp))
		}
	}
	path := v.anyAPI().and(v.balancerFine()).and(v.linkFine(func(l linkChange) bool { return l.from == history.RoleAggregator }))
	return ran.and(path).and(v.calm())
}

// anyAPI is when at least one API server could be reached through the load balancer.
func (v *view) anyAPI() spans {
	servers := v.processes(history.RoleAPIServer)
	if len(servers) == 0 {
		return v.apiFine("")
	}
	var any spans
	for _, p := range servers {
		any = any.or(v.apiFine(p.node).and(v.linkFine(func(l linkChange) bool {
			return l.from == history.RoleLoadBalancer && (l.node == p.node || l.node == "")
		})))
	}
	return any
}

// calm is when no change that may have cost the aggregator its place was still being dealt with.
func (v *view) calm() spans {
	stirred := make([]span, len(v.stirs))
	for i, at := range v.stirs {
		stirred[i] = span{at, at.Add(v.takeover() + v.latency())}
	}
	return merged(stirred).not(v.whole)
}
