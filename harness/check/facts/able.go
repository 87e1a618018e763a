package facts

import (
	"slices"
	"sort"
	"time"

	"github.com/kmsharness/kmsharness/harness/check/span"
	"github.com/kmsharness/kmsharness/harness/history"
)

// ReporterAble is when the reporter of node could write what is believed: it could write, and its clock was right.
func (v *Facts) ReporterAble(node string) span.Set {
	if able, known := v.reporterAble[node]; known {
		return able
	}
	able := v.ReporterWriting(node).Intersect(v.ClockSettled(node))
	v.reporterAble[node] = able
	return able
}

// ReporterWriting is when the reporter of node could write: it ran, and so did everything between it and etcd, nobody refused it, and the list of reports
// was there and had a place for it. A clock that is wrong keeps nobody from writing, but for one that was set back.
func (v *Facts) ReporterWriting(node string) span.Set {
	if v.WithoutField() {
		return nil
	}
	server := node
	if history.AnyAPIServer(v.Run.Connectivity) {
		server = ""
	}
	kept := v.refused(history.RoleReporter, node, server).Union(v.crowded(node)).Union(v.clockSetBack(node))
	return v.ReporterReaching(node).Intersect(kept.Complement(v.Period))
}

// ReporterReaching is when the reporter of node ran, and reached an API server that could serve it.
func (v *Facts) ReporterReaching(node string) span.Set {
	ran := v.While(Reporter(node), Up)
	linked := ran.Intersect(v.LinksFineBut(func(l Link) bool { return l.From == history.RoleReporter && l.on(node) }, v.inTime))
	switch v.Run.Connectivity {
	case history.ConnectService:
		return linked.Intersect(v.ServiceFine())
	case history.ConnectStream:
		return linked.Intersect(v.streamFine(node))
	case history.ConnectAltSvc:
		return ran.Intersect(v.discovered(node, linked)).Intersect(v.failedOver())
	default:
		return linked.Intersect(v.apiServerFine(node))
	}
}

// streamFine is when an aggregator served the stream of node: it was in charge, the node was on the network, and the node was known to it. A node that
// nobody expects is refused.
func (v *Facts) streamFine(node string) span.Set {
	onNetwork := v.LinksFine(func(l Link) bool { return l.From == history.RoleNode && l.Node == node })
	return v.AggregatorInCharge.Intersect(onNetwork).Intersect(v.nodeListed(node))
}

// discovered returns the spans in which the reporter of node knew the alternative API servers: in each run, from its first write on, or from the
// instant at which it could have made one. linked has the spans in which it reached the load balancer. Until it ends it forgets no alternative
// (docs/contract.md, connectivity altsvc).
func (v *Facts) discovered(node string, linked span.Set) span.Set {
	t := v.Run.Timing
	could := linked.Intersect(v.ServiceFine()).Settled(t.Interval + t.Jitter + t.WriteTimeout)
	var out []span.Span
	for _, run := range v.While(Reporter(node), Up, Paused) {
		from := run.To
		if first := could.Clip(run); len(first) > 0 {
			from = first.Begin()
		}
		if i := slices.IndexFunc(v.Writes(node), func(w Write) bool { return run.Contains(w.To) }); i >= 0 {
			from = span.Earliest(from, v.Writes(node)[i].To)
		}
		out = append(out, span.New(from, run.To))
	}
	return span.Merge(out)
}

// readAggregator reads when an aggregator ran, had a path to an API server, and had taken (back) its place after anything on that path changed.
func (v *Facts) readAggregator() {
	ran := span.Set{v.Period}
	if len(v.OfRole(history.RoleAggregator)) > 0 {
		ran = v.some(history.RoleAggregator, func(p Process) span.Set { return v.While(p, Up) })
	}
	path := v.anyAPIServer().Intersect(v.balancerFine()).Intersect(v.LinksFine(func(l Link) bool { return l.From == history.RoleAggregator }))
	path = path.Intersect(v.Prompt(history.RoleLoadBalancer, history.RoleAPIServer)).Intersect(v.refused(history.RoleAggregator, "", "").Complement(v.Period))
	v.AggregatorBehind = ran.Intersect(path).Intersect(v.undisturbed()).Intersect(v.ClockSettled(""))
	v.AggregatorInCharge = v.AggregatorBehind.Intersect(v.WatchesLate().Complement(v.Period))
	v.AggregatorAble = v.AggregatorInCharge.Settled(v.Latency())
}

// undisturbed returns the spans in which the aggregator had recovered from each disturbance: after the takeover allowance, or as soon as a write of a
// rollup or of its lease shows that it leads. After a pause or on a broken link a write proves little, since other connections may hang.
func (v *Facts) undisturbed() span.Set {
	var shown []time.Time
	for _, r := range v.Requests {
		if (r.ByAggregator() || r.Relayed) && r.Write && r.Succeeded() {
			shown = append(shown, r.Received)
		}
	}
	slices.SortFunc(shown, time.Time.Compare)
	var disturbed []span.Span
	for _, s := range v.Disturbances {
		until := s.At.Add(v.Takeover())
		if i := sort.Search(len(shown), func(i int) bool { return shown[i].After(s.At) }); s.clean && i < len(shown) {
			until = span.Earliest(until, shown[i])
		}
		disturbed = append(disturbed, span.New(s.At, until))
	}
	return span.Merge(disturbed).Complement(v.Period)
}

// operatorStarts is how long an operator under test may take from its start until it has written the ClusterOperator. In library-go the lease of one that
// was killed is valid for 137 s, and its successor tries to take it every 26 s.
const operatorStarts = 3 * time.Minute

// UnionAble returns when the writer of the ClusterOperator could write it. The writer is the aggregator, or with Union.Leave the operator under test, which
// reaches the API in the same way as the aggregator.
func (v *Facts) UnionAble() span.Set {
	if !v.Run.Union.Leave {
		return v.AggregatorAble
	}
	return v.AggregatorAble.Intersect(v.While(Process{Role: history.RoleOperator}, Up).Settled(operatorStarts))
}

// Starved is a wait of a process that is not under test for a processor.
type Starved struct {
	span.Span
	Process Process
}

func (v *Facts) readStarvation() {
	for e := range v.Each(history.KindStarvation) {
		s := e.Starvation
		if x := span.New(s.From, s.To).Clip(v.Period); !UnderTest(s.Role) && !x.Empty() {
			v.Starved = append(v.Starved, Starved{x, Process{Role: s.Role, Node: s.Node}})
		}
	}
	v.Starvation = span.Where(v.Starved, func(Starved) bool { return true })
}
