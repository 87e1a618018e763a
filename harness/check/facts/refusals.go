package facts

import (
	"time"

	"github.com/kmsharness/kmsharness/harness/check/span"
	"github.com/kmsharness/kmsharness/harness/history"
)

// Refusal is a time in which API servers refused requests: a scenario's verb refuse, or an expired credential. The code depends on its mode
// (history.RefuseForbidden and the constants after it).
type Refusal struct {
	*history.Refusal
	span.Span
}

func (r Refusal) Affects(role string) bool { return r.Object == "" && (r.Role == "" || r.Role == role) }

// Answers reports whether a request of a role was refused by it. A request counts if it was received or answered in the
// span: it may be received before the refusal begins, or be answered after its end.
func (r Refusal) Answers(q *Request, role string) bool {
	return r.Affects(role) && r.Code == q.Code && (r.Contains(q.At) || r.Contains(q.Received))
}

// lastRetry returns the latest instant at which a refused client sends its request again. client-go waits for
// Retry-After and then repeats the request by itself, so that a refusal of an instant can keep a client away for
// seconds.
func (r Refusal) lastRetry() time.Time { return r.To.Add(r.RetryAfter) }

// Refusals tells which requests were refused when.
type Refusals struct {
	All  []Refusal
	form string // of the reports
}

func newRefusals(log *Log, form string) *Refusals {
	out := &Refusals{form: form}
	var all []Refusal
	for e := range log.Each(history.KindRefusal) {
		all = append(all, Refusal{e.Refusal, span.New(e.At, log.Period.To)})
	}
	for i, r := range all {
		again := func(o Refusal) bool {
			return o.Role == r.Role && o.Object == r.Object && o.Node == r.Node && o.Verb == r.Verb && o.Mode == r.Mode
		}
		if !r.Over {
			r.To = until(all[i+1:], again, r.To)
			out.All = append(out.All, r)
		}
	}
	return out
}

// meets reports whether a refusal is of requests that a role makes. Reporters apply. In the conditions form they get the CR
// before, for its lastTransitionTime; the typed form has none.
func (rs *Refusals) meets(r Refusal, role string) bool {
	reads := role == history.RoleReporter && r.Verb != "" && r.Verb != "patch"
	return r.Affects(role) && (!reads || r.Verb == "get" && rs.form == history.FormConditions)
}

// of returns the spans in which requests of a role could be refused by the API server of a node; with no server, by any.
// A credential that has expired is that of the reporter of node alone, whichever server refuses it. A refusal of no
// length still costs the request that it met, so it lasts a nanosecond here.
func (rs *Refusals) of(role, node, server string) span.Set {
	return span.Map(rs.All, func(r Refusal) span.Span {
		at := server
		if r.Mode == history.RefuseExpired {
			at = node
		}
		if rs.meets(r, role) && (at == "" || r.Node == "" || r.Node == at) {
			return span.New(r.From, span.Latest(r.lastRetry(), r.From.Add(1)))
		}
		return span.Span{}
	})
}
