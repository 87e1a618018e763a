package check

import (
	"slices"
	"sort"
	"time"

	"github.com/kmsharness/kmsharness/harness/history"
)

// ability is when reporters and aggregators could do their work.
type ability struct {
	facts      *Facts
	behind     spans            // when an aggregator did its work, although it may have learnt of changes late
	inCharge   spans            // when it did, and learnt of them at once
	aggregator spans            // when it did for long enough that all it says must be right
	reporters  map[string]spans // by node; memo: reporter
}

// apiFine is when the API server of node could serve a write. Where etcd has a member on every node, an API server uses that of
// its own; whether enough of the others are there for a write shows in the link to it (harness/record/canary).
func (nw *network) apiFine(node string) spans {
	fine := nw.facts.processes.upOrUnmentioned(process{role: history.RoleAPIServer, node: node})
	for _, etcd := range nw.facts.processes.ofRole(history.RoleEtcd) {
		if etcd.node == "" || etcd.node == node || node == "" {
			fine = fine.and(nw.facts.processes.in(etcd, procUp))
		}
	}
	return fine.and(nw.fine(func(l linkChange) bool {
		return l.from == history.RoleAPIServer && (l.node == node || l.node == "")
	}))
}

// reporterAble is when the reporter of node could write what is believed: it could write, and its clock was right.
func (ab *ability) reporter(node string) spans {
	if able, known := ab.reporters[node]; known {
		return able
	}
	able := ab.writing(node).and(ab.facts.clocks.settled(node))
	ab.reporters[node] = able
	return able
}

// writing is when the reporter of node could write: it ran, and so did everything between it and etcd, nobody refused it, and the list of reports
// was there and had a place for it. A clock that is wrong keeps nobody from writing, but for one that was set back.
func (ab *ability) writing(node string) spans {
	if ab.facts.objects.withoutField() {
		return nil
	}
	server := node
	if history.AnyAPIServer(ab.facts.run.Connectivity) {
		server = ""
	}
	return ab.reaching(node).and(ab.facts.network.refused(history.RoleReporter, node, server).or(ab.facts.objects.crowded(node)).or(ab.facts.clocks.setBack(node)).not(ab.facts.complete))
}

// reaching is when the reporter of node ran, and reached an API server that could serve it.
func (ab *ability) reaching(node string) spans {
	ran := ab.facts.processes.in(process{role: history.RoleReporter, node: node}, procUp)
	linked := ran.and(ab.facts.network.fineBut(func(l linkChange) bool {
		return l.from == history.RoleReporter && (l.node == node || l.node == "")
	}, ab.facts.network.inTime))
	switch ab.facts.run.Connectivity {
	case history.ConnectService:
		return linked.and(ab.facts.network.serviceFine())
	case history.ConnectStream:
		return linked.and(ab.streamFine(node))
	case history.ConnectAltSvc:
		return ran.and(ab.discovered(node, linked)).and(ab.facts.network.failedOver())
	default:
		return linked.and(ab.facts.network.apiFine(node))
	}
}

// streamFine is when an aggregator served the stream of node: it was in charge, the node was on the network, and the node was known to it. A node that
// nobody expects is refused.
func (ab *ability) streamFine(node string) spans {
	onNetwork := ab.facts.network.fine(func(l linkChange) bool { return l.from == history.RoleNode && l.node == node })
	return ab.inCharge.and(onNetwork).and(ab.facts.expectations.listed(node))
}

// discovered returns the spans in which the reporter of node knew the alternative API servers: in each run, from its first write on, or from the
// instant at which it could have made one. linked has the spans in which it reached the load balancer. Until it ends it forgets no alternative
// (docs/contract.md, connectivity altsvc).
func (ab *ability) discovered(node string, linked spans) spans {
	t := ab.facts.run.Timing
	could := linked.and(ab.facts.network.serviceFine()).settled(t.Interval + t.Jitter + t.WriteTimeout)
	var out spans
	for _, life := range ab.facts.processes.in(process{role: history.RoleReporter, node: node}, procUp, procPaused) {
		from := life.to
		if first := could.clip(life); len(first) > 0 {
			from = first[0].from
		}
		for _, w := range ab.facts.requests.writesOf(node) {
			if life.has(w.to) {
				from = earliest(from, w.to)
				break
			}
		}
		out = append(out, span{from, life.to})
	}
	return merged(out)
}

// failedOver is when a client that knows the API servers reached one of them. Each that is gone or stands still costs it a write, and the
// next one goes to another. One that runs and cannot serve it does not: why an answer is none, or an error, a client cannot know.
func (nw *network) failedOver() spans {
	t := nw.facts.run.Timing
	some, each := spans(nil), spans{nw.facts.complete}
	for _, p := range nw.facts.processes.ofRole(history.RoleAPIServer) {
		fine := nw.apiFine(p.node)
		some = some.or(fine)
		each = each.and(fine.or(nw.facts.processes.in(p, procDown, procStarting, procPaused).settled(t.Interval + t.Jitter + t.WriteTimeout)))
	}
	return some.and(each)
}

// writeCrossings of a link lie in a write, at most: a handshake, a request that reads, and the write.
const writeCrossings = 6

// inTime reports whether a write over a slow link is done within its deadline.
func (nw *network) inTime(l linkChange) bool {
	return l.delay > 0 && writeCrossings*l.delay < nw.facts.run.Timing.WriteTimeout
}

// serviceFine is when every API server behind the load balancer was fine: which of them a connection reaches is not
// known.
func (nw *network) serviceFine() spans {
	fine := nw.balancerFine().and(nw.fine(func(l linkChange) bool { return l.from == history.RoleLoadBalancer }))
	for _, p := range nw.facts.processes.ofRole(history.RoleAPIServer) {
		fine = fine.and(nw.apiFine(p.node))
	}
	return fine
}

func (nw *network) balancerFine() spans {
	fine := spans{nw.facts.complete}
	for _, p := range nw.facts.processes.ofRole(history.RoleLoadBalancer) {
		fine = fine.and(nw.facts.processes.in(p, procUp))
	}
	return fine
}

// aggregatorInCharge is when an aggregator ran, had a path to an API server, and had taken (back) its place after
// anything on that path changed.
func (ab *ability) aggregatorInCharge() spans {
	ran := spans{ab.facts.complete}
	if replicas := ab.facts.processes.ofRole(history.RoleAggregator); len(replicas) > 0 {
		ran = nil
		for _, p := range replicas {
			ran = ran.or(ab.facts.processes.in(p, procUp))
		}
	}
	path := ab.facts.network.anyAPI().and(ab.facts.network.balancerFine()).and(ab.facts.network.fine(func(l linkChange) bool { return l.from == history.RoleAggregator }))
	return ran.and(path).and(ab.facts.network.prompt(history.RoleLoadBalancer, history.RoleAPIServer)).and(ab.undisturbed()).and(ab.facts.clocks.settled("")).and(ab.facts.network.refused(history.RoleAggregator, "", "").not(ab.facts.complete))
}

// operatorStarts is how long an operator under test may take from its start until it has written the ClusterOperator. In library-go the lease of one that
// was killed is valid for 137 s, and its successor tries to take it every 26 s.
const operatorStarts = 3 * time.Minute

// uniting returns when the writer of the ClusterOperator could write it. The writer is the aggregator, or with Union.Leave the operator under test, which
// reaches the API in the same way as the aggregator.
func (ab *ability) uniting() spans {
	if !ab.facts.run.Union.Leave {
		return ab.aggregator
	}
	return ab.aggregator.and(ab.facts.processes.in(process{role: history.RoleOperator}, procUp).settled(operatorStarts))
}

// crossings of a link that lie between what the aggregator has to answer to and its answer, at most: the news comes to it; a step
// that is under way looks, writes the rollups, removes, and writes the union; the next one looks and writes.
const crossings = 12

// prompt is when no link that begins at one of from was so slow that the delay alone may use up the aggregator's bound. An API server
// that is gone is left for another, and the history tells when; one that is only slow nobody has a reason to leave, and whether the
// aggregator uses it is not known.
func (nw *network) prompt(from ...string) spans {
	return nw.fine(func(l linkChange) bool { return (l.ok || nw.delays(l)) && slices.Contains(from, l.from) })
}

// delays reports whether a link may use up the aggregator's bound, and still carries what is sent.
func (nw *network) delays(l linkChange) bool {
	switch l.state {
	case history.LinkSlow:
		return l.delay == 0 || crossings*l.delay > nw.facts.run.Timing.AggregatorLatency
	case history.LinkThrottled, history.LinkLossy, history.LinkSlowHandshake: // for how long is not known
		return true
	}
	return false
}

// anyAPI is when at least one API server could be reached through the load balancer.
func (nw *network) anyAPI() spans {
	servers := nw.facts.processes.ofRole(history.RoleAPIServer)
	if len(servers) == 0 {
		return nw.apiFine("")
	}
	var any spans
	for _, p := range servers {
		any = any.or(nw.apiFine(p.node).and(nw.fine(func(l linkChange) bool {
			return l.from == history.RoleLoadBalancer && (l.node == p.node || l.node == "")
		})))
	}
	return any
}

// undisturbed returns the spans in which the aggregator had recovered from each disturbance: after the takeover allowance, or as soon as a write of a
// rollup or of its lease shows that it leads. After a pause or on a broken link a write proves little, since other connections may hang.
func (ab *ability) undisturbed() spans {
	var shown []time.Time
	for n := range ab.facts.requests.all {
		r := &ab.facts.requests.all[n]
		if (r.aggregator() || r.relayed) && r.write && r.succeeded() {
			shown = append(shown, r.received)
		}
	}
	slices.SortFunc(shown, time.Time.Compare)
	var disturbed []span
	for _, s := range ab.facts.processes.disturbances {
		until := s.at.Add(ab.facts.takeover())
		if i := sort.Search(len(shown), func(i int) bool { return shown[i].After(s.at) }); s.clean && i < len(shown) {
			until = earliest(until, shown[i])
		}
		disturbed = append(disturbed, span{s.at, until})
	}
	return merged(disturbed).not(ab.facts.complete)
}
