package trace

import (
	"slices"
	"time"

	"github.com/kmsharness/kmsharness/harness/history"
)

// Why a request had no envelope operation in it.
const (
	whyCached  = "no envelope operation: key or object was in the API server's memory"
	whyNoKMS   = "no envelope operation: the write changed nothing, or no plugin encrypts what this API server writes"
	whyRefused = "no envelope operation: the request failed"
	whyUnknown = "unknown: this API server's log is not in the history"
)

func (j *joiner) request(r *history.Request) {
	j.t.Requests = append(j.t.Requests, Request{AuditID: r.AuditID, Node: r.APIServer, Verb: r.Verb, Object: r.Resource + "/" + r.Namespace + "/" + r.Name,
		User: r.User, Code: r.Code, Received: r.Received, Took: r.Completed.Sub(r.Received)})
}

// slack is how far two clocks' readings of one instant may lie apart: klog has microseconds, audit logs have, too.
const slack = time.Millisecond

// within says whether something at t on node was a part of the request.
func (r *Request) within(node string, t time.Time) bool {
	return r.Node == node && !t.Before(r.Received.Add(-slack)) && !t.After(r.Received.Add(r.Took+slack))
}

// joinRequests finds the operations and keys of each request: those of its API server and object, in its time.
func (j *joiner) joinRequests() {
	decrypts, uses := map[string][]int{}, map[string][]int{}
	for n := range j.t.Operations {
		if o := &j.t.Operations[n]; o.Op == Decrypt && o.Object != "" {
			decrypts[o.Object] = append(decrypts[o.Object], n)
		}
	}
	for n, u := range j.uses {
		uses[u.Object] = append(uses[u.Object], n)
	}
	for n := range j.t.Requests {
		r := &j.t.Requests[n]
		for _, i := range decrypts[r.Object] {
			if o := &j.t.Operations[i]; r.within(o.Node, o.Hops[0].Began) {
				r.Operations = append(r.Operations, o.UID)
				o.attribute(r.AuditID)
			}
		}
		for _, i := range uses[r.Object] {
			if u := j.uses[i]; r.within(u.Node, u.At) {
				r.DEK = u.UID
			}
		}
		r.Why = j.why(r)
	}
}

// ambiguous stands for more than one.
const ambiguous = "more than one"

func (o *Operation) attribute(auditID string) {
	if o.Request != "" {
		auditID = ambiguous
	}
	o.Request = auditID
}

func (j *joiner) why(r *Request) string {
	switch {
	case len(r.Operations) > 0:
		return ""
	case !j.world.logged[r.Node]:
		return whyUnknown
	case r.Code >= 400 || r.Code == 0:
		return whyRefused
	case r.DEK == "" && slices.Contains([]string{"create", "update", "patch"}, r.Verb):
		return whyNoKMS
	}
	return whyCached
}

// Cached are the requests that were answered without an envelope operation (S2-04).
func (t *Trace) Cached() []Request {
	return slices.DeleteFunc(slices.Clone(t.Requests), func(r Request) bool { return r.Why != whyCached })
}
