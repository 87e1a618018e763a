package trace

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/kmsharness/kmsharness/harness/history"
)

// Join makes chains of what the parties told.
func Join(events []history.Event) *Trace {
	events = history.InTime(events)
	j := &joiner{t: &Trace{}, byUID: map[string]int{}, world: collect(events)}
	for n := range events {
		j.see(&events[n])
	}
	for n := range j.t.Operations {
		j.t.Operations[n].finish()
	}
	slices.SortStableFunc(j.t.Operations, func(a, b Operation) int { return cmp.Or(a.Began.Compare(b.Began), strings.Compare(a.UID, b.UID)) })
	j.joinRequests()
	j.joinObjects()
	for n := range j.t.Operations {
		j.world.explain(&j.t.Operations[n])
	}
	if n := len(events); n > 0 {
		j.t.From, j.t.To = events[0].At, events[n-1].At
	}
	return j.t
}

// joiner gathers what belongs to one uid.
type joiner struct {
	t     *Trace
	byUID map[string]int // "op uid" → operation
	uses  []Use
	raw   []*history.Event
	world *world
}

func (j *joiner) see(e *history.Event) {
	switch {
	case e.Run != nil:
		j.t.Scenario, j.t.Backend = e.Run.Scenario, e.Run.Backend
	case e.Call != nil && e.Call.Method != "Status":
		j.call(e)
	case e.Envelope != nil && e.Envelope.Op == "use":
		j.uses = append(j.uses, Use{objectName(e.Envelope.Object), e.Envelope.Node, e.Envelope.For.Verb, e.At, e.Envelope.UID, e.Seq})
	case e.Envelope != nil:
		j.envelope(e)
	case e.Request != nil && e.Request.Resource == "secrets":
		j.request(e.Request)
	case e.Data != nil && e.Data.Op == history.DataRaw && e.Data.OK:
		j.raw = append(j.raw, e)
	}
}

// operation of a uid; what has none is one of its own.
func (j *joiner) operation(op, uid string) *Operation {
	key := op + " " + uid
	if n, known := j.byUID[key]; known && uid != "" {
		return &j.t.Operations[n]
	}
	j.byUID[key] = len(j.t.Operations)
	j.t.Operations = append(j.t.Operations, Operation{UID: uid, Op: op, OK: true})
	return &j.t.Operations[len(j.t.Operations)-1]
}

func (j *joiner) call(e *history.Event) {
	c := e.Call
	o := j.operation(strings.ToLower(c.Method), c.UID)
	o.Node, o.KeyID, o.Source = c.Node, c.KeyID, cmp.Or(c.DEKSource, o.Source)
	o.KEKID = cmp.Or(o.KEKID, c.KEKID, c.AskedKEKID)
	text := c.Code
	if c.Text != "" {
		text += ": " + c.Text
	}
	if len(c.Faults) > 0 {
		text += ", under " + strings.Join(c.Faults, "+")
	}
	ok := c.Outcome == history.CallOK
	o.add(Hop{Plugin, c.Began, c.Took, ok, text, e.Source, e.Seq})
	if !ok {
		o.OK, o.Error = false, cmp.Or(o.Error, c.Code+": "+c.Text)
	}
}

func (j *joiner) envelope(e *history.Event) {
	n := e.Envelope
	o := j.operation(strings.ToLower(n.Op), n.UID)
	o.Node, o.KeyID = cmp.Or(o.Node, n.Node), cmp.Or(o.KeyID, n.KeyID)
	h := Hop{Party: n.Hop, Began: e.At.Add(-n.Took), Took: n.Took, OK: n.OK, Source: e.Source, Seq: e.Seq}
	switch n.Hop {
	case APIServer:
		o.Object, h.Text = objectName(n.Object), "logged"
		o.Background = o.Op == Decrypt && n.For.Verb == ""
	case RemoteKMS:
		o.KEKID, h.Text = cmp.Or(n.KEKID, o.KEKID), "ok"
	}
	if !n.OK {
		h.Text = n.Error
		o.OK, o.Error = false, cmp.Or(o.Error, n.Error)
	}
	o.add(h)
}

func (o *Operation) add(h Hop) { o.Hops = append(o.Hops, h) }

// finish puts the hops into order and measures.
func (o *Operation) finish() {
	slices.SortStableFunc(o.Hops, func(a, b Hop) int { return cmp.Or(cmp.Compare(rank(a.Party), rank(b.Party)), a.Began.Compare(b.Began)) })
	o.Began = o.Hops[0].Began
	ended := o.Hops[0].ended()
	for _, h := range o.Hops {
		if h.Began.Before(o.Began) {
			o.Began = h.Began
		}
		if h.ended().After(ended) {
			ended = h.ended()
		}
	}
	o.Took = ended.Sub(o.Began)
}

func rank(party string) int { return slices.Index([]string{APIServer, Plugin, RemoteKMS}, party) }

// objectName is a storage key as histories name objects: "/registry/secrets/ns/a" is "secrets/ns/a".
func objectName(key string) string { return strings.TrimPrefix(key, "/registry/") }

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
				if o.Request != "" {
					o.Request = ambiguous
				} else {
					o.Request = r.AuditID
				}
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
