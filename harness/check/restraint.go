package check

import (
	"slices"
	"time"

	"github.com/kmsharness/kmsharness/harness/history"
)

// Bounds of restraint, for each aggregator: it may ask for the same thing from several places (a mirror, a look before a write, a sign of
// life), each of which backs off by itself.
const (
	// mostRefused in a second, of one kind, where nothing was said about when to come back.
	mostRefused = 10
	// mostThrottled within Retry-After, of one kind, after an answer that asked for it.
	mostThrottled = 4
	// keptRetryAfter is how much of Retry-After must be kept at least: a request may have a deadline, and the next one is another's.
	keptRetryAfter = 5 * time.Second
)

// kindOfRequest is what a client repeats.
type kindOfRequest struct{ verb, resource, subresource, name, contentType string }

// judgeRestraint: an aggregator that is refused backs off, and comes back when it was told to.
func judgeRestraint(v *Facts, f *Finding) {
	if len(v.network.refusals) == 0 {
		return
	}
	replicas := max(1, len(v.processes.ofRole(history.RoleAggregator)))
	// What an API server or a way held back comes all at once.
	way := v.network.serviceFine().and(v.network.fine(func(l linkChange) bool { return l.from == history.RoleAggregator })).settled(time.Second + v.tolerance())
	byKind := map[kindOfRequest][]*request{}
	var kinds []kindOfRequest
	for i := range v.requests.all {
		r := &v.requests.all[i]
		if !r.aggregator() || r.Code < 400 || r.Code == 404 || r.Code == 409 {
			continue
		}
		k := kindOfRequest{r.Verb, r.Resource, r.Subresource, r.Name, r.ContentType}
		if byKind[k] == nil {
			kinds = append(kinds, k)
		}
		byKind[k] = append(byKind[k], r)
	}
	for _, k := range kinds {
		all := byKind[k]
		slices.SortStableFunc(all, func(a, b *request) int { return a.received.Compare(b.received) })
		judgeRefused(v, f, k, all, way, replicas)
	}
}

func judgeRefused(v *Facts, f *Finding, k kindOfRequest, all []*request, way spans, replicas int) {
	for i, r := range all {
		window, most := restraintAt(v, r)
		if window == 0 || !way.covers(span{r.received, r.received.Add(window)}) {
			continue
		}
		f.JudgedAt(r.received, r.received.Add(window))
		n := i + 1
		for n < len(all) && all[n].received.Before(r.received.Add(window)) {
			n++
		}
		if again := n - i - 1; again > most*replicas {
			f.Violate(Violation{Rule: ruleRestraint, At: all[n-1].received, From: r.received, To: all[n-1].received, Seq: all[n-1].seq,
				Seen:    r.User + " was refused " + k.verb + " " + k.resource + " (" + number(int64(r.Code)) + ") and asked again " + number(int64(again)) + " times within " + short(window),
				Allowed: "at most " + number(int64(most*replicas)) + ": who is refused backs off, and keeps to Retry-After"})
			return // one violation for one kind
		}
	}
}

// restraintAt is how often a request of a kind may be repeated after one that was refused, and within which time; 0 where no refusal was in
// force: what else went wrong ends connections, after which all begin anew.
func restraintAt(v *Facts, r *request) (window time.Duration, most int) {
	for _, x := range v.network.refusals {
		if !x.of(history.RoleAggregator) || x.Code != r.Code || !x.has(r.at) && !x.has(r.received) {
			continue
		}
		if x.RetryAfter > 0 {
			return min(x.RetryAfter, keptRetryAfter), mostThrottled
		}
		window, most = time.Second, mostRefused
	}
	return window, most
}
