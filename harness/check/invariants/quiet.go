package invariants

import (
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/check/facts"
	"github.com/kmsharness/kmsharness/harness/check/span"
	"github.com/kmsharness/kmsharness/harness/check/text"
	"github.com/kmsharness/kmsharness/harness/history"
)

// It lists everything that may cause a write, and calls a write without any of them unneeded. Each write of the CR wakes
// all watchers of it, which in OpenShift are most controllers of the operator.
func judgeQuiet(v *facts.Facts) (f Finding) {
	if len(v.Requests.All) == 0 {
		return f
	}
	cr, co := causesToWrite(v)
	slow := v.Network.Prompt(history.RoleAggregator, history.RoleLoadBalancer, history.RoleAPIServer)
	late := slow.Complement(v.Period).Union(lateCauses(v))
	cr, co = heldUp(cr, late), heldUp(co, late)
	steady := co.Complement(v.Period)
	for _, s := range steady {
		if s.Length() >= v.Interval {
			f.judgedIn(s)
		}
	}
	f.measure("steady", text.Short(steady.Total()))
	for _, r := range v.Requests.All {
		if !r.ByAggregator() || !r.Write || !r.OnCR && !r.OnClusterOperator {
			continue
		}
		f.JudgedAt(r.Received, r.At)
		cause := co
		if r.OnCR {
			cause = cr
		}
		if !cause.Overlaps(span.New(r.Received, r.At.Add(v.Tolerance+1))) {
			f.Violate(Violation{At: r.At, Seq: r.Seq, Seen: writer(r) + " wrote " + r.Verb + " " + r.Resource + " " + r.Name + " although nothing had changed",
				Allowed: "no write unless a report (other than its lastChecked), an expectation or a rollup changed within the last " + text.Short(v.Latency())})
		}
	}
	judgeIdle(v, &f)
	judgeRestraint(v, &f)
	return f
}

// heldUp extends the causes that come while the aggregator may learn of them late: such a cause lasts until the end of
// that time.
func heldUp(causes, late span.Set) span.Set {
	out := slices.Clone(causes)
	for _, l := range late {
		if within := causes.Clip(l); len(within) > 0 {
			out = append(out, span.New(within.Begin(), l.To))
		}
	}
	return span.Merge(out)
}

// lateCauses returns the spans in which the aggregator may answer to something older than a latency, because its watches
// were late, or its requests were refused or not served until now.
func lateCauses(v *facts.Facts) span.Set {
	out := slices.Clone(v.Aggregator.Unserved)
	for _, l := range v.LateWatches {
		out = append(out, l.Grow(0, l.Late))
	}
	for _, r := range v.Refusals.All {
		if r.Affects(history.RoleAggregator) {
			out = append(out, r.Grow(0, r.RetryAfter))
		}
	}
	return span.Grown(out, v.Tolerance, v.Latency())
}

// judgeIdle: it writes only when a rollup changes, so that a write which changed nothing was one too many. After a lost answer, or when
// it may have lost its place, it cannot know.
func judgeIdle(v *facts.Facts, f *Finding) {
	doubts := []span.Span{span.New(v.Period.From, v.Period.From.Add(v.Takeover))}
	for _, s := range v.Aggregator.Disturbances {
		doubts = append(doubts, span.New(s.At, s.At).Grow(v.Latency(), v.Takeover+v.Latency()))
	}
	for _, r := range v.Requests.All {
		if r.ByAggregator() && r.Write && !r.Succeeded() {
			doubts = append(doubts, span.New(r.Received, r.At.Add(v.Takeover)))
		}
	}
	sure := span.Merge(doubts).Complement(v.Period)
	for _, r := range v.Requests.All {
		if !r.ByAggregator() || !r.Write || !r.Succeeded() || r.ResourceVersion == "" || !sure.Covers(span.New(r.Received, r.At)) {
			continue
		}
		f.Judged++
		if made := v.Requests.MadeBy[r.ResourceVersion]; made != nil && made != r {
			f.Violate(Violation{At: r.At, Seq: r.Seq, Seen: fmt.Sprintf("%s wrote %s %s and changed nothing: it was as event %d had left it", writer(r), r.Resource, r.Name, made.Seq),
				Allowed: "a write only when a rollup changes"})
		}
	}
}

// causesToWrite is when the aggregator may write the CR, and the ClusterOperator: for one latency after something
// that it must answer to, for a takeover more after it may have lost its place.
func causesToWrite(v *facts.Facts) (cr, co span.Set) {
	out := lostPlaces(v)
	cause := func(at ...time.Time) {
		for _, t := range at {
			out = append(out, span.New(t, t))
		}
	}
	for _, t := range v.Truths.All {
		cause(t.From)
		if len(t.Allowed) > 1 { // the instant of the change is not known
			out = append(out, t.Span)
		}
	}
	for _, x := range v.Expectations {
		cause(x.From)
	}
	for _, states := range v.Reports {
		for i, s := range states {
			if i == 0 || !sameNews(v, states[i-1].Value, s.Value, s.From) {
				cause(s.From)
			}
			last := i+1 == len(states)
			if at := ages(v, s, last); len(at) > 0 {
				cause(at...)
				if !last {
					cause(s.To)
				}
			}
		}
	}
	var fromRollups []span.Span
	for t, states := range v.CR.States {
		_, isReport := contract.NodeOfCondition(t)
		for _, s := range states {
			switch {
			case slices.Contains(contract.RollupTypes(), t):
				fromRollups = append(fromRollups, span.New(s.From, s.From))
			case !isReport:
				cause(s.From)
			}
		}
	}
	if v.Unions.HasInertia(contract.ClusterOperatorDegraded) { // an inertia ended
		for _, u := range v.Unions.Of(contract.ClusterOperatorDegraded) {
			fromRollups = append(fromRollups, span.New(u.From, u.From))
		}
	}
	for _, r := range v.Requests.All { // somebody else meddled, or its own write failed
		failed := r.ByAggregator() && !r.Succeeded()
		if r.Write && (failed || !r.UnderTest() && (r.OnCR || r.OnClusterOperator)) {
			cause(r.At)
		}
	}
	for _, node := range v.Reports.Nodes() { // an orphan is removed when it is stale
		out = append(out, v.Reports.Present(node).Intersect(v.Expectations.Node(node).Complement(v.Period))...)
	}
	cr = span.Grown(out, v.Tolerance, v.Latency())
	return cr, cr.Union(span.Grown(fromRollups, v.Tolerance, v.Latency()))
}

// lostPlaces are when an aggregator may have lost its place, and could not take it back yet.
func lostPlaces(v *facts.Facts) []span.Span {
	out := append(v.Clocks.Settled("").Complement(v.Period), span.New(v.Period.From, v.Period.From))
	for _, d := range v.Aggregator.Disturbances {
		out = append(out, span.New(d.At, d.At))
	}
	for p := range v.Processes.States {
		if facts.DisturbsAggregator(p.Role) { // it may serve long before it is said to be ready
			out = append(out, v.Processes.While(p, facts.Starting)...)
		}
	}
	return span.Grown(out, 0, v.Takeover)
}

// ages are the instants at which an entry of a report became stale while it stood, or was no longer skewed: the message names it from then until the next
// report, whatever is worse.
func ages(v *facts.Facts, s facts.State[facts.Report], last bool) (out []time.Time) {
	if s.Value == nil {
		return nil
	}
	for _, e := range s.Value.Entries {
		if at := e.Checked.Add(contract.StaleAfter(v.Interval)); last || s.To.After(at) {
			out = append(out, at)
		}
		if at := e.Checked.Add(-v.Interval); at.After(s.From) {
			out = append(out, at)
		}
	}
	return out
}

// sameNews reports whether two reports differ in nothing but when they were checked, and are believed, stale or skewed
// alike. A rollup does not depend on the rest. A clock that is wrong writes reports that are stale when they come, and
// those are news.
func sameNews(v *facts.Facts, a, b *facts.Report, now time.Time) bool {
	if a == nil || b == nil {
		return a == b
	}
	age := func(e facts.Entry) contract.Freshness { return contract.FreshnessAt(now, e.Checked, v.Interval) }
	return a.Problem == b.Problem && slices.EqualFunc(a.Entries, b.Entries, func(x, y facts.Entry) bool {
		return x.KeyID == y.KeyID && x.KEKID == y.KEKID && x.Status == y.Status && x.Detail == y.Detail && age(x) == age(y)
	})
}

// Bounds of restraint, for each aggregator: it may ask for the same thing from several places (an informer, a read before a write, a liveness check
// ), each of which backs off by itself.
const (
	// mostRefused in a second, of one kind, where nothing was said about when to come back.
	mostRefused = 10
	// mostThrottled within Retry-After, of one kind, after an answer that asked for it.
	mostThrottled = 4
	// keptRetryAfter is how much of Retry-After must be kept at least: a request may have a deadline, and the next one is another's.
	keptRetryAfter = 5 * time.Second
)

// judgeRestraint judges that an aggregator that is refused backs off, and keeps to Retry-After. Requests count by kind
// (verb, resource, name), because each of its loops backs off by itself. 404 and 409 are no refusals but answers to
// which a client acts at once.
func judgeRestraint(v *facts.Facts, f *Finding) {
	if len(v.Refusals.All) == 0 {
		return
	}
	replicas := max(1, len(v.Processes.OfRole(history.RoleAggregator)))
	// What an API server or a connection held back comes all at once.
	flowing := v.APIServers.ServiceFine().Intersect(v.Network.FineFrom(history.RoleAggregator)).Settled(time.Second + v.Tolerance)
	refused := slices.DeleteFunc(slices.Clone(v.Requests.All), func(r *facts.Request) bool {
		return !r.ByAggregator() || r.Code < http.StatusBadRequest || r.Code == http.StatusNotFound || r.Code == http.StatusConflict
	})
	for _, all := range grouped(refused, func(r *facts.Request) [5]string {
		return [5]string{r.Verb, r.Resource, r.Subresource, r.Name, r.ContentType}
	}) {
		slices.SortStableFunc(all, func(a, b *facts.Request) int { return a.Received.Compare(b.Received) })
		judgeRefused(v, f, all, flowing, replicas)
	}
}

// judgeRefused judges requests of one kind, and finds one violation at most.
func judgeRefused(v *facts.Facts, f *Finding, all []*facts.Request, flowing span.Set, replicas int) {
	for i, r := range all {
		window, most := restraintAt(v, r)
		during := span.New(r.Received, r.Received.Add(window))
		if window == 0 || !flowing.Covers(during) {
			continue
		}
		f.judgedIn(during)
		n := i + 1
		for n < len(all) && all[n].Received.Before(during.To) {
			n++
		}
		if again := n - i - 1; again > most*replicas {
			last := all[n-1]
			f.Violate(Violation{Rule: "restraint", At: last.Received, From: r.Received, To: last.Received, Seq: last.Seq,
				Seen:    fmt.Sprintf("%s was refused %s %s (%d) and asked again %d times within %s", r.User, r.Verb, r.Resource, r.Code, again, text.Short(window)),
				Allowed: fmt.Sprintf("at most %d: who is refused backs off, and keeps to Retry-After", most*replicas)})
			return
		}
	}
}

// restraintAt is how often a request of a kind may be repeated after one that was refused, and within which time; 0 where no refusal was in
// force: what else went wrong ends connections, after which all begin anew.
func restraintAt(v *facts.Facts, r *facts.Request) (window time.Duration, most int) {
	for _, x := range v.Refusals.All {
		switch answers := x.Answers(r, history.RoleAggregator); {
		case answers && x.RetryAfter > 0:
			return min(x.RetryAfter, keptRetryAfter), mostThrottled
		case answers:
			window, most = time.Second, mostRefused
		}
	}
	return window, most
}
