package check

import (
	"slices"
	"sort"
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/history"
)

// expectations are what should report, over time.
type expectations struct {
	facts *Facts
	all   []expectation
}

// expectation is the state of what should report since at.
type expectation struct {
	span
	active bool
	nodes  map[string]history.ExpectedNode
	// From, where that is a node's creation, is cut to the second: until sure the expectation before it may hold still.
	sure time.Time
}

func (xs *expectations) read() {
	for n := range xs.facts.events {
		e := &xs.facts.events[n]
		if e.Kind != history.KindExpected {
			continue
		}
		if n := len(xs.all); n > 0 {
			xs.all[n-1].to = e.At
		}
		x := expectation{span{e.At, xs.facts.complete.to}, e.Expected.KMSActive, map[string]history.ExpectedNode{}, e.At}
		for _, n := range e.Expected.Nodes {
			x.nodes[n.Name] = n
			if n.Since.Equal(e.At) {
				x.sure = e.At.Add(time.Second)
			}
		}
		xs.all = append(xs.all, x)
	}
}

// at returns what should report at t; ok is false before the first event of an expectation.
func (xs *expectations) at(t time.Time) (x expectation, ok bool) {
	i := sort.Search(len(xs.all), func(i int) bool { return xs.all[i].from.After(t) }) - 1
	if i < 0 {
		return expectation{}, false
	}
	return xs.all[i], true
}

// expecting is when KMS was active and ok held of what was expected.
func (xs *expectations) expecting(ok func(expectation) bool) spans {
	var out []span
	for _, x := range xs.all {
		if x.active && ok(x) {
			out = append(out, x.span)
		}
	}
	return merged(out)
}

func (xs *expectations) active() spans { return xs.expecting(func(expectation) bool { return true }) }

func (xs *expectations) ofNode(node string) spans {
	return xs.expecting(func(x expectation) bool { _, ok := x.nodes[node]; return ok })
}

// listed is when a node was expected to report, also while KMS was not active.
func (xs *expectations) listed(node string) spans {
	var out []span
	for _, x := range xs.all {
		if _, ok := x.nodes[node]; ok {
			out = append(out, x.span)
		}
	}
	return merged(out)
}

func (xs *expectations) ofPlugin(p plugin) spans {
	return xs.expecting(func(x expectation) bool {
		for _, k := range x.nodes[p.node].KeyIDs {
			if k == p.keyID {
				return true
			}
		}
		return false
	})
}

// known is since when it is known what should report.
func (xs *expectations) known() spans {
	if len(xs.all) == 0 {
		return nil
	}
	return spans{{xs.all[0].from, xs.facts.complete.to}}
}

// judgeTries: who is refused does not try more often than others write.
func judgeTries(v *Facts, f *Finding, node string) {
	tries := v.requests.refusedTries(node)
	if len(tries) == 0 {
		return
	}
	// What an API server or a way held back comes all at once.
	lives := v.able.reaching(node).settled(v.run.Timing.WriteTimeout + v.tolerance())
	for _, life := range v.processes.runsOf(node) {
		judgeFast(v, f, node, tries, "tries to write", ruleTries, lives.clip(life))
	}
}

// refusedTries are the writes of node's reporter that were refused.
func (rq *requestFacts) refusedTries(node string) (out []write) {
	if len(rq.facts.network.refusals) == 0 {
		return nil
	}
	for _, n := range rq.requestsOf[node] {
		if r := &rq.all[n]; r.write && r.onCR && rq.wasRefused(r, history.RoleReporter) {
			out = append(out, write{from: r.received, to: r.at, seq: r.seq})
		}
	}
	slices.SortStableFunc(out, func(a, b write) int { return a.from.Compare(b.from) })
	return out
}

// wasRefused says whether a refusal of a role's requests was in force that answers as a request was answered.
func (rq *requestFacts) wasRefused(r *request, role string) bool {
	return slices.ContainsFunc(rq.facts.network.refusals, func(x refusal) bool {
		return x.of(role) && x.Code == r.Code && (x.has(r.at) || x.has(r.received) || x.to.Equal(r.at))
	})
}

// grace is the end of a node's grace for its first report. It depends on when the aggregator first knew the node,
// which the history only bounds: from mayEnd on the node may, from mustEnd on it must be called missing.
type grace struct{ mayEnd, mustEnd time.Time }

// awaiting remembers, going forward in time, what may have begun a grace.
type awaiting struct {
	v        *Facts
	gone     map[string][]time.Time // when reports vanished, by node
	restarts []time.Time            // an aggregator started, and forgot what it had seen
	blank    []time.Time            // … while its rollups did not stand on the CR
}

func newAwaiting(v *Facts) *awaiting {
	a := &awaiting{v: v, gone: map[string][]time.Time{}}
	for node, changes := range v.objects.reports {
		for _, c := range changes {
			if c.rep == nil {
				a.gone[node] = append(a.gone[node], c.at)
			}
		}
	}
	degraded := v.objects.rollup(contract.ConditionDegraded)
	for _, p := range v.processes.ofRole(history.RoleAggregator) {
		for _, c := range v.processes.procs[p] {
			if c.event != history.ProcessStarted && c.event != history.ProcessReady {
				continue
			}
			a.restarts = append(a.restarts, c.at)
			standing := false
			for _, s := range degraded {
				standing = standing || s.cond != nil && s.has(c.at)
			}
			if !standing {
				a.blank = append(a.blank, c.at)
			}
		}
	}
	return a
}

// graces is the grace of every expected node that has no report at t.
func (a *awaiting) graces(t time.Time, x expectation, reports map[string]*report) map[string]grace {
	out := map[string]grace{}
	stale := contract.StaleAfter(a.v.interval())
	for name, n := range x.nodes {
		if reports[name] != nil {
			continue
		}
		// What surely began it, and what may have: an aggregator that restarted knows the node's creation only.
		seen := latest(a.lastIn(a.v.expectations.ofNode(name), t), a.lastIn(a.v.expectations.active(), t), a.vanished(name, t))
		early := seen
		for _, r := range a.restarts {
			if !r.After(t) && !r.Before(seen) {
				early = time.Time{}
			}
		}
		early = latest(early, n.Since)
		if !seen.After(a.v.expectations.all[0].from) { // expected since before the recording began
			early = n.Since
		}
		late := latest(seen, n.Since.Add(time.Second))
		for _, r := range a.blank {
			if !r.After(t) {
				late = latest(late, r.Add(a.v.takeover()))
			}
		}
		out[name] = grace{early.Add(stale - a.v.tolerance()), late.Add(stale + a.v.latency())}
	}
	return out
}

// lastIn is the beginning of the span that holds t.
func (a *awaiting) lastIn(s spans, t time.Time) time.Time {
	for _, x := range s {
		if x.has(t) {
			return x.from
		}
	}
	return time.Time{}
}

// vanished is when the last report of node went, at or before t.
func (a *awaiting) vanished(node string, t time.Time) time.Time {
	return lastIn(a.gone[node], time.Time{}, t, time.Time{})
}
