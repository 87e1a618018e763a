package facts

import (
	"maps"
	"net/http"
	"slices"
	"sort"
	"time"

	"github.com/kmsharness/kmsharness/harness/check/span"
	"github.com/kmsharness/kmsharness/harness/history"
)

// Aggregator tells when an aggregator could do its work, whichever of the replicas it was. Only the leader writes, and a
// history does not record who leads, so the replicas are judged as one.
type Aggregator struct {
	// Behind is when one did its work, although it may have learnt of changes late, and InCharge when it learnt of them at
	// once. Able is when it had done so for long enough that all it says must be right.
	Behind, InCharge, Able span.Set
	// Unserved is when the load balancer may have given it, again and again, an API server that cannot serve.
	Unserved     span.Set
	Disturbances []Disturbance
}

// Disturbance is an instant at which the aggregator may have lost the lead or its connections. It is clean if
// connections break visibly: a client that gets a reset reconnects at once, one whose peer is paused waits for a
// time-out.
type Disturbance struct {
	At    time.Time
	clean bool
}

// DisturbsAggregator: a change of these processes may break the aggregator's connections or its leadership.
func DisturbsAggregator(role string) bool {
	return slices.Contains([]string{history.RoleAggregator, history.RoleAPIServer, history.RoleEtcd, history.RoleLoadBalancer}, role)
}

// newAggregator reads when an aggregator ran, had a path to an API server, and had taken (back) its place after anything on that path changed.
func newAggregator(run *history.Run, servers *APIServers, refusals *Refusals, watches []LateWatches, requests *Requests, clocks *Clocks) *Aggregator {
	processes, network, bounds := servers.processes, servers.network, servers.bounds
	period := processes.period
	ran := span.Set{period}
	if len(processes.OfRole(history.RoleAggregator)) > 0 {
		ran = processes.some(history.RoleAggregator, func(p Process) span.Set { return processes.While(p, Up) })
	}
	path := servers.reachedBy(run.AggregatorConnectivity).Intersect(refusals.of(history.RoleAggregator, "", "").Complement(period))
	a := &Aggregator{Disturbances: disturbances(processes, network, refusals)}
	if c := run.AggregatorConnectivity; c != history.ConnectLoopback && c != history.ConnectStatic {
		a.Unserved = a.unserved(requests, servers, bounds.Takeover)
	}
	a.Behind = ran.Intersect(path).Intersect(a.unsettled(requests, bounds.Takeover).Union(a.Unserved).Complement(period)).Intersect(clocks.Settled(""))
	a.InCharge = a.Behind.Intersect(span.All(watches).Complement(period))
	a.Able = a.InCharge.Settled(bounds.Latency())
	return a
}

// reachedBy is when an aggregator with a connectivity reached an API server that could serve it. Which node it is on the history does not say.
func (s *APIServers) reachedBy(connectivity string) span.Set {
	direct := s.network.Prompt(history.RoleAPIServer)
	balanced := direct.Intersect(s.anyFine()).Intersect(s.network.FineFrom(history.RoleAggregator)).Intersect(s.network.Prompt(history.RoleLoadBalancer))
	switch connectivity {
	case history.ConnectLoopback:
		return direct.Intersect(s.processes.every(history.RoleAPIServer, s.fine))
	case history.ConnectStatic:
		return direct.Intersect(s.aggregatorFailedOver())
	case history.ConnectAltSvc:
		return balanced.Union(direct.Intersect(s.aggregatorFailedOver()).Intersect(s.advertisedTo(balanced)))
	}
	return balanced
}

// aggregatorFailedOver is when an aggregator that knows the API servers used one that could serve it. One that runs and cannot serve costs a liveness
// probe before the next one is tried: two that fail together cost more than one takeover.
func (s *APIServers) aggregatorFailedOver() span.Set {
	return s.someFine().Intersect(s.processes.every(history.RoleAPIServer, func(p Process) span.Set {
		quick := s.fine(p).Union(s.processes.While(p, Down, Starting))
		return quick.Union(quick.Complement(s.processes.period).Settled(2 * s.bounds.Takeover))
	}))
}

// advertisedTo returns the spans in which an aggregator knew the alternative API servers: in each run, from the first time at which it had reached one
// through the load balancer for long enough. balanced has the spans in which it could.
func (s *APIServers) advertisedTo(balanced span.Set) span.Set {
	could := balanced.Settled(s.bounds.Takeover)
	return s.processes.some(history.RoleAggregator, func(p Process) (known span.Set) {
		for _, run := range s.processes.While(p, Up, Paused) {
			if first := could.Clip(run); len(first) > 0 {
				known = append(known, span.New(first.Begin(), run.To))
			}
		}
		return known
	})
}

// disturbances are changes of processes and links on the way to etcd, and the ends of refusals: after one the aggregator has to come back, as after a lost
// connection.
func disturbances(processes *Processes, network *Network, refusals *Refusals) (out []Disturbance) {
	for p, states := range processes.States {
		for _, s := range states {
			if DisturbsAggregator(p.Role) {
				hung := slices.Contains([]string{history.ProcessPaused, history.ProcessSilenced, history.ProcessResumed}, s.Event)
				out = append(out, Disturbance{s.From, !hung})
			}
		}
	}
	for _, l := range network.Links {
		if l.From != history.RoleReporter && l.From != "client" {
			out = append(out, Disturbance{At: l.At})
		}
	}
	for _, r := range refusals.All {
		if r.Affects(history.RoleAggregator) {
			out = append(out, Disturbance{r.lastRetry(), true})
		}
	}
	return out
}

// unsettled returns the spans in which the aggregator may not have recovered from a disturbance: for the takeover
// allowance, or until a write of a rollup or of its lease shows that it leads. After a pause, or on a broken link, a
// write proves little: the aggregator has several connections (watches, the lease, writes), and others may still hang.
func (a *Aggregator) unsettled(requests *Requests, takeover time.Duration) span.Set {
	var shown []time.Time
	for _, r := range requests.All {
		if (r.ByAggregator() || r.Relayed) && r.Write && r.Succeeded() {
			shown = append(shown, r.Received)
		}
	}
	slices.SortFunc(shown, time.Time.Compare)
	return span.Map(a.Disturbances, func(d Disturbance) span.Span {
		until := d.At.Add(takeover)
		if i := sort.Search(len(shown), func(i int) bool { return shown[i].After(d.At) }); d.clean && i < len(shown) {
			until = span.Earliest(until, shown[i])
		}
		return span.New(d.At, until)
	})
}

// unserved returns the spans after a disturbance in which an API server behind the load balancer takes connections and cannot serve: until a request
// of the aggregator was answered, and a takeover after that. The load balancer has no health checks, and each such API server costs a time-out. An
// aggregator that tried for longer than unlucky takeovers had the choice.
func (a *Aggregator) unserved(requests *Requests, servers *APIServers, takeover time.Duration) span.Set {
	var served []time.Time
	for _, r := range requests.All {
		if (r.ByAggregator() || r.Relayed) && r.Verb != "watch" && r.Code < http.StatusInternalServerError { // a watch begins from a cache
			served = append(served, r.At)
		}
	}
	slices.SortFunc(served, time.Time.Compare)
	misleading := servers.misleading()
	return span.Map(a.Disturbances, func(d Disturbance) span.Span {
		if !misleading.Overlaps(span.New(d.At, d.At.Add(takeover))) {
			return span.New(d.At, d.At) // empty
		}
		until := d.At.Add(unlucky * takeover)
		if i := sort.Search(len(served), func(i int) bool { return served[i].After(d.At) }); i < len(served) {
			until = span.Earliest(until, served[i].Add(takeover))
		}
		return span.New(d.At, until)
	})
}

// unlucky takeovers are more than a client needs that gets one of two API servers by chance, each time it connects.
const unlucky = 6

// LateWatches is a time in which an API server sent the aggregators late what changed.
type LateWatches struct {
	span.Span
	Late time.Duration
}

// lateWatches returns the spans in which watches were late, by the latest of all API servers, since it is not known
// which one an aggregator watches. An event without a node is about all of them and replaces what was said of each.
func lateWatches(log *Log) (out []LateWatches) {
	late := map[string]time.Duration{}
	for e := range log.Each(history.KindWatches) {
		if e.Watches.Node == "" {
			clear(late)
		}
		late[e.Watches.Node] = e.Watches.Late
		out = span.Append(out, LateWatches{span.New(e.At, log.Period.To), slices.Max(slices.Collect(maps.Values(late)))})
	}
	return slices.DeleteFunc(out, func(l LateWatches) bool { return l.Late == 0 })
}
