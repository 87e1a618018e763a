package facts

import (
	"slices"
	"time"

	"github.com/kmsharness/kmsharness/harness/check/span"
	"github.com/kmsharness/kmsharness/harness/history"
)

// Link is a new state of a network link, from At until the next one of the same link.
type Link struct {
	*history.Link
	At, Until time.Time
}

func (l Link) OK() bool { return l.State == history.LinkOK }

// on reports whether it is the link of a node, or of all.
func (l Link) on(node string) bool { return l.Node == node || l.Node == "" }

type linkID struct{ from, to, node string }

func (l Link) id() linkID { return linkID{l.From, l.To, l.Node} }

// Refusal is a time in which API servers refused requests.
type Refusal struct {
	*history.Refusal
	span.Span
}

// LateWatches is a time in which an API server sent the aggregators late what changed.
type LateWatches struct {
	span.Span
	Late time.Duration
}

func (v *Facts) readLinks() {
	last := map[linkID]int{}
	for e := range v.Each(history.KindLink) {
		l := Link{e.Link, e.At, v.Period.To}
		if before, known := last[l.id()]; known {
			v.Links[before].Until = e.At
		}
		last[l.id()] = len(v.Links)
		v.Links = append(v.Links, l)
		if l.From != history.RoleReporter && l.From != "client" {
			v.Disturbances = append(v.Disturbances, Disturbance{At: e.At})
		}
	}
}

// LinksFine is when no link that match picks was cut, reset, slow or mute.
func (v *Facts) LinksFine(match func(Link) bool) span.Set {
	return v.LinksFineBut(match, func(Link) bool { return false })
}

// LinksFineBut is LinksFine, except that it ignores slow links that are tolerable.
func (v *Facts) LinksFineBut(match, tolerable func(Link) bool) span.Set {
	since := map[linkID]time.Time{}
	var bad []span.Span
	for _, l := range v.Links {
		if !match(l) {
			continue
		}
		if from, broken := since[l.id()]; broken {
			bad = append(bad, span.New(from, span.Latest(l.At, from.Add(1)))) // what was under way is lost, however short it was
			delete(since, l.id())
		}
		if !l.OK() && !(l.State == history.LinkSlow && tolerable(l)) {
			since[l.id()] = l.At
		}
	}
	for _, from := range since {
		bad = append(bad, span.New(from, v.Period.To))
	}
	return span.Merge(bad).Complement(v.Period)
}

// readRefusals reads which requests were refused when. After the end of one the aggregator has to come back, as
// after a lost connection.
func (v *Facts) readRefusals() {
	type key struct{ role, node, verb, mode string }
	open := map[key]int{}
	for e := range v.Each(history.KindRefusal) {
		k := key{e.Refusal.Role, e.Refusal.Node, e.Refusal.Verb, e.Refusal.Mode}
		if i, ok := open[k]; ok {
			v.Refusals[i].To = e.At
			delete(open, k)
		}
		if !e.Refusal.Over {
			open[k] = len(v.Refusals)
			v.Refusals = append(v.Refusals, Refusal{e.Refusal, span.New(e.At, v.Period.To)})
		}
	}
	for _, r := range v.Refusals {
		if r.Affects(history.RoleAggregator) {
			v.Disturbances = append(v.Disturbances, Disturbance{r.lastRetry(), true})
		}
	}
}

// Affects reports whether requests of a role are refused.
func (r Refusal) Affects(role string) bool { return r.Role == "" || r.Role == role }

// Answers reports whether it refused a request of a role as that was refused.
func (r Refusal) Answers(q *Request, role string) bool {
	return r.Affects(role) && r.Code == q.Code && (r.Contains(q.At) || r.Contains(q.Received))
}

// lastRetry returns the latest instant at which a refused client sends its request again: no client does before Retry-After.
func (r Refusal) lastRetry() time.Time { return r.To.Add(r.RetryAfter) }

// meets reports whether a refusal is of requests that a role makes: reporters apply, and in the conditions form they read before.
func (v *Facts) meets(r Refusal, role string) bool {
	reads := role == history.RoleReporter && r.Verb != "" && r.Verb != "patch"
	return r.Affects(role) && (!reads || r.Verb == "get" && v.Run.Contract == history.FormConditions)
}

// refused is when requests of a role could be refused by the API server of a node; with no server, by any. A credential that has expired is that of the
// reporter of node alone. A lost instant is lost, however short it was.
func (v *Facts) refused(role, node, server string) span.Set {
	var out []span.Span
	for _, r := range v.Refusals {
		at := server
		if r.Mode == history.RefuseExpired {
			at = node
		}
		if v.meets(r, role) && (at == "" || r.Node == "" || r.Node == at) {
			out = append(out, span.New(r.From, span.Latest(r.lastRetry(), r.From.Add(1))))
		}
	}
	return span.Merge(out)
}

// readWatches reads when watches were late, by the latest of all API servers: which one an aggregator watches is not known.
func (v *Facts) readWatches() {
	late := map[string]time.Duration{}
	for e := range v.Each(history.KindWatches) {
		if e.Watches.Node == "" {
			clear(late)
		}
		late[e.Watches.Node] = e.Watches.Late
		most := time.Duration(0)
		for _, d := range late {
			most = max(most, d)
		}
		v.LateWatches = span.Append(v.LateWatches, LateWatches{span.New(e.At, v.Period.To), most})
	}
	v.LateWatches = slices.DeleteFunc(v.LateWatches, func(l LateWatches) bool { return l.Late == 0 })
}

// WatchesLate is when watches were late.
func (v *Facts) WatchesLate() span.Set {
	return span.Where(v.LateWatches, func(LateWatches) bool { return true })
}

// apiServerFine is when the API server of node could serve a write. Where etcd has a member on every node, an API server uses that of
// its own; whether enough of the others are there for a write shows in the link to it (harness/record/canary).
func (v *Facts) apiServerFine(node string) span.Set {
	etcd := v.every(history.RoleEtcd, func(p Process) span.Set {
		if p.Node == "" || p.Node == node || node == "" {
			return v.While(p, Up)
		}
		return span.Set{v.Period}
	})
	links := v.LinksFine(func(l Link) bool { return l.From == history.RoleAPIServer && l.on(node) })
	return v.UpOrUnmentioned(Process{Role: history.RoleAPIServer, Node: node}).Intersect(etcd).Intersect(links)
}

// ServiceFine is when every API server behind the load balancer was fine: which of them a connection reaches is not known.
func (v *Facts) ServiceFine() span.Set {
	links := v.LinksFine(func(l Link) bool { return l.From == history.RoleLoadBalancer })
	return v.balancerFine().Intersect(links).Intersect(v.every(history.RoleAPIServer, func(p Process) span.Set { return v.apiServerFine(p.Node) }))
}

func (v *Facts) balancerFine() span.Set {
	return v.every(history.RoleLoadBalancer, func(p Process) span.Set { return v.While(p, Up) })
}

// anyAPIServer is when at least one API server could be reached through the load balancer.
func (v *Facts) anyAPIServer() span.Set {
	if len(v.OfRole(history.RoleAPIServer)) == 0 {
		return v.apiServerFine("")
	}
	return v.some(history.RoleAPIServer, func(p Process) span.Set {
		return v.apiServerFine(p.Node).Intersect(v.LinksFine(func(l Link) bool { return l.From == history.RoleLoadBalancer && l.on(p.Node) }))
	})
}

// failedOver is when a client that knows the API servers reached one of them. Each that is gone or stands still costs it a write, and the
// next one goes to another. One that runs and cannot serve it does not: why an answer is none, or an error, a client cannot know.
func (v *Facts) failedOver() span.Set {
	t := v.Run.Timing
	fine := func(p Process) span.Set { return v.apiServerFine(p.Node) }
	return v.some(history.RoleAPIServer, fine).Intersect(v.every(history.RoleAPIServer, func(p Process) span.Set {
		return fine(p).Union(v.While(p, Down, Starting, Paused).Settled(t.Interval + t.Jitter + t.WriteTimeout))
	}))
}

// writeCrossings of a link lie in a write, at most: a handshake, a request that reads, and the write.
const writeCrossings = 6

// inTime reports whether a write over a slow link is done within its deadline.
func (v *Facts) inTime(l Link) bool {
	return l.Delay > 0 && writeCrossings*l.Delay < v.Run.Timing.WriteTimeout
}

// crossings of a link that lie between what the aggregator has to answer to and its answer, at most: the news comes to it; a step
// that is under way reads, writes the rollups, removes, and writes the union; the next one reads and writes.
const crossings = 12

// Prompt is when no link that begins at one of from was so slow that the delay alone may use up the aggregator's bound. An API server
// that is gone is left for another, and the history tells when; one that is only slow nobody has a reason to leave, and whether the
// aggregator uses it is not known.
func (v *Facts) Prompt(from ...string) span.Set {
	return v.LinksFine(func(l Link) bool { return (l.OK() || v.delays(l)) && slices.Contains(from, l.From) })
}

// delays reports whether a link may use up the aggregator's bound, and still carries what is sent.
func (v *Facts) delays(l Link) bool {
	slow := l.State == history.LinkSlow && (l.Delay == 0 || crossings*l.Delay > v.Run.Timing.AggregatorLatency)
	return slow || slices.Contains([]string{history.LinkThrottled, history.LinkLossy, history.LinkSlowHandshake}, l.State) // for how long is not known
}
