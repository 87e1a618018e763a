package invariants

import (
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/kmsharness/kmsharness/harness/check/facts"
	"github.com/kmsharness/kmsharness/harness/check/span"
	"github.com/kmsharness/kmsharness/harness/check/text"
	"github.com/kmsharness/kmsharness/harness/history"
)

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

// kindOfRequest is what a client repeats.
type kindOfRequest struct{ verb, resource, subresource, name, contentType string }

// judgeRestraint: an aggregator that is refused backs off, and comes back when it was told to.
func judgeRestraint(v *facts.Facts, f *Finding) {
	if len(v.Refusals) == 0 {
		return
	}
	replicas := max(1, len(v.OfRole(history.RoleAggregator)))
	// What an API server or a connection held back comes all at once.
	flowing := v.ServiceFine().Intersect(v.LinksFine(func(l facts.Link) bool { return l.From == history.RoleAggregator })).Settled(time.Second + v.Tolerance())
	byKind := map[kindOfRequest][]*facts.Request{}
	var kinds []kindOfRequest
	for _, r := range v.Requests {
		if !r.ByAggregator() || r.Code < http.StatusBadRequest || r.Code == http.StatusNotFound || r.Code == http.StatusConflict {
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
			f.Violate(Violation{Rule: ruleRestraint, At: last.Received, From: r.Received, To: last.Received, Seq: last.Seq,
				Seen:    fmt.Sprintf("%s was refused %s %s (%d) and asked again %d times within %s", r.User, r.Verb, r.Resource, r.Code, again, text.Short(window)),
				Allowed: fmt.Sprintf("at most %d: who is refused backs off, and keeps to Retry-After", most*replicas)})
			return
		}
	}
}

// restraintAt is how often a request of a kind may be repeated after one that was refused, and within which time; 0 where no refusal was in
// force: what else went wrong ends connections, after which all begin anew.
func restraintAt(v *facts.Facts, r *facts.Request) (window time.Duration, most int) {
	for _, x := range v.Refusals {
		switch answers := x.Answers(r, history.RoleAggregator); {
		case answers && x.RetryAfter > 0:
			return min(x.RetryAfter, keptRetryAfter), mostThrottled
		case answers:
			window, most = time.Second, mostRefused
		}
	}
	return window, most
}
