package check

import (
	"slices"
	"sort"
	"time"

	"github.com/kmsharness/kmsharness/harness/history"
)

// connectService is the value of Run.Connectivity for reporters that go through the load balancer.
const connectService = "service"

// apiFine is when the API server of node could serve a write. Where etcd has a member on every node, an API server uses that of
// its own; whether enough of the others are there for a write shows in the link to it (harness/record/canary).
func (v *view) apiFine(node string) spans {
	fine := v.upOrUnmentioned(process{role: history.RoleAPIServer, node: node})
	for _, etcd := range v.processes(history.RoleEtcd) {
		if etcd.node == "" || etcd.node == node || node == "" {
			fine = fine.and(v.in(etcd, procUp))
		}
	}
	return fine.and(v.linkFine(func(l linkChange) bool {
		return l.from == history.RoleAPIServer && (l.node == node || l.node == "")
	}))
}

// reporterAble is when the reporter of node could write what is believed: it could write, and its clock was right.
func (v *view) reporterAble(node string) spans {
	if able, known := v.readCaps[node]; known {
		return able
	}
	able := v.writing(node).and(v.clockRight(node))
	v.readCaps[node] = able
	return able
}

// writing is when the reporter of node could write: it ran, and so did everything between it and etcd, nobody refused it, and the list of reports
// was there and had a place for it. A clock that is wrong keeps nobody from writing, but for one that was set back.
func (v *view) writing(node string) spans {
	if v.withoutField() {
		return nil
	}
	server := node
	if v.run.Connectivity == connectService {
		server = "" // any
	}
	return v.reaching(node).and(v.refused(history.RoleReporter, server).or(v.crowded(node)).or(v.setBack(node)).not(v.whole))
}

// reaching is when the reporter of node ran, and reached an API server that could serve it.
func (v *view) reaching(node string) spans {
	able := v.in(process{role: history.RoleReporter, node: node}, procUp).and(v.linkBearable(func(l linkChange) bool {
		return l.from == history.RoleReporter && (l.node == node || l.node == "")
	}, v.inTime))
	if v.run.Connectivity == connectService {
		return able.and(v.serviceFine())
	}
	return able.and(v.apiFine(node))
}

// writeCrossings of a link lie in a write, at most: a handshake, a request that reads, and the write.
const writeCrossings = 6

// inTime reports whether a write over a slow link is done within its deadline.
func (v *view) inTime(l linkChange) bool {
	return l.delay > 0 && writeCrossings*l.delay < v.run.Timing.WriteTimeout
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

// aggregatorInCharge is when an aggregator ran, had a path to an API server, and had taken (back) its place after
// anything on that path changed.
func (v *view) aggregatorInCharge() spans {
	ran := spans{v.whole}
	if replicas := v.processes(history.RoleAggregator); len(replicas) > 0 {
		ran = nil
		for _, p := range replicas {
			ran = ran.or(v.in(p, procUp))
		}
	}
	path := v.anyAPI().and(v.balancerFine()).and(v.linkFine(func(l linkChange) bool { return l.from == history.RoleAggregator }))
	return ran.and(path).and(v.prompt(history.RoleLoadBalancer, history.RoleAPIServer)).and(v.calm()).and(v.clockRight("")).and(v.refused(history.RoleAggregator, "").not(v.whole))
}

// crossings of a link that lie between what the aggregator has to answer to and its answer, at most: the news comes to it; a step
// that is under way looks, writes the rollups, removes, and writes the union; the next one looks and writes.
const crossings = 12

// prompt is when no link that begins at one of from was so slow that the delay alone may use up the aggregator's bound. An API server
// that is gone is left for another, and the history tells when; one that is only slow nobody has a reason to leave, and whether the
// aggregator uses it is not known.
func (v *view) prompt(from ...string) spans {
	return v.linkFine(func(l linkChange) bool {
		slow := l.state == history.LinkSlow && (l.delay == 0 || crossings*l.delay > v.run.Timing.AggregatorLatency)
		return (l.ok || slow) && slices.Contains(from, l.from)
	})
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

// calm is when no change that may have cost the aggregator its place was still being dealt with: for the takeover
// allowance, or until the aggregator shows by a write (of a rollup, or of its lease) that it is in charge. After a
// pause or on a broken link a write proves little, since other connections may hang.
func (v *view) calm() spans {
	var shown []time.Time
	for n := range v.requests {
		r := &v.requests[n]
		if r.aggregator() && r.write && r.succeeded() {
			shown = append(shown, r.received)
		}
	}
	slices.SortFunc(shown, time.Time.Compare)
	var stirred []span
	for _, s := range v.stirs {
		until := s.at.Add(v.takeover())
		if i := sort.Search(len(shown), func(i int) bool { return shown[i].After(s.at) }); s.clean && i < len(shown) {
			until = earliest(until, shown[i])
		}
		stirred = append(stirred, span{s.at, until})
	}
	return merged(stirred).not(v.whole)
}
