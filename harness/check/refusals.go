package check

import (
	"time"

	"github.com/kmsharness/kmsharness/harness/history"
)

// refusal is a time in which API servers refused requests.
type refusal struct {
	*history.Refusal
	span
}

// lateWatches is a time in which an API server told the aggregators late what changed.
type lateWatches struct {
	span
	late time.Duration
}

// network is links, refused requests and late watches.
type network struct {
	facts    *Facts
	links    []linkChange
	refusals []refusal
	late     []lateWatches
}

// readRefusals reads which requests were refused when. After the end of one the aggregator has to come back, as
// after a lost connection.
func (nw *network) readRefusals() {
	type key struct{ role, node, verb, mode string }
	open := map[key]int{}
	for n := range nw.facts.events {
		e := &nw.facts.events[n]
		if e.Kind != history.KindRefusal {
			continue
		}
		k := key{e.Refusal.Role, e.Refusal.Node, e.Refusal.Verb, e.Refusal.Mode}
		if i, ok := open[k]; ok {
			nw.refusals[i].to = e.At
			delete(open, k)
		}
		if !e.Refusal.Over {
			open[k] = len(nw.refusals)
			nw.refusals = append(nw.refusals, refusal{e.Refusal, span{e.At, nw.facts.complete.to}})
		}
	}
	for _, r := range nw.refusals {
		if r.of(history.RoleAggregator) {
			nw.facts.processes.disturbances = append(nw.facts.processes.disturbances, disturbance{r.lastRetry(), true})
		}
	}
}

func (r refusal) of(role string) bool { return r.Role == "" || r.Role == role }

// lastRetry returns the latest instant at which a refused client sends its request again: no client does before Retry-After.
func (r refusal) lastRetry() time.Time { return r.to.Add(r.RetryAfter) }

// meets reports whether a refusal is of requests that a role makes: reporters apply, and in the conditions form they read before.
func (nw *network) meets(r refusal, role string) bool {
	if role != history.RoleReporter || r.Verb == "" || r.Verb == "patch" {
		return r.of(role)
	}
	return r.of(role) && r.Verb == "get" && nw.facts.run.Contract == history.FormConditions
}

// refused is when requests of a role could be refused by the API server of a node; with no server, by any. A credential that has expired is that of the
// reporter of node alone. A lost instant is lost, however short it was.
func (nw *network) refused(role, node, server string) spans {
	var out []span
	for _, r := range nw.refusals {
		at := server
		if r.Mode == history.RefuseExpired {
			at = node
		}
		if nw.meets(r, role) && (at == "" || r.Node == "" || r.Node == at) {
			out = append(out, span{r.from, latest(r.lastRetry(), r.from.Add(1))})
		}
	}
	return merged(out)
}

// readWatches reads when watches were late, by the latest of all API servers: which one an aggregator watches is not known.
func (nw *network) readWatches() {
	late := map[string]time.Duration{}
	for n := range nw.facts.events {
		e := &nw.facts.events[n]
		if e.Kind != history.KindWatches {
			continue
		}
		if e.Watches.Node == "" {
			clear(late)
		}
		late[e.Watches.Node] = e.Watches.Late
		if n := len(nw.late); n > 0 {
			nw.late[n-1].to = earliest(nw.late[n-1].to, e.At)
		}
		most := time.Duration(0)
		for _, d := range late {
			most = max(most, d)
		}
		if most > 0 {
			nw.late = append(nw.late, lateWatches{span{e.At, nw.facts.complete.to}, most})
		}
	}
}

// lateness is when watches were late.
func (nw *network) lateness() spans {
	var out []span
	for _, l := range nw.late {
		out = append(out, l.span)
	}
	return merged(out)
}
