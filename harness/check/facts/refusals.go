package facts

import (
	"slices"
	"time"

	"github.com/kmsharness/kmsharness/harness/check/span"
	"github.com/kmsharness/kmsharness/harness/history"
)

// Refusal is a time in which API servers refused requests.
type Refusal struct {
	*history.Refusal
	span.Span
}

func (r Refusal) Affects(role string) bool { return r.Role == "" || r.Role == role }

// Answers reports whether it refused a request of a role as that was refused.
func (r Refusal) Answers(q *Request, role string) bool {
	return r.Affects(role) && r.Code == q.Code && (r.Contains(q.At) || r.Contains(q.Received))
}

// lastRetry returns the latest instant at which a refused client sends its request again: no client does before Retry-After.
func (r Refusal) lastRetry() time.Time { return r.To.Add(r.RetryAfter) }

// Refusals tells which requests were refused when.
type Refusals struct {
	All  []Refusal
	form string // of the reports
}

func newRefusals(log *Log, form string) *Refusals {
	out, all := &Refusals{form: form}, slices.Collect(log.Each(history.KindRefusal))
	for i, e := range all {
		r := e.Refusal
		if r.Over {
			continue
		}
		again := func(x *history.Event) bool {
			o := x.Refusal
			return o.Role == r.Role && o.Node == r.Node && o.Verb == r.Verb && o.Mode == r.Mode
		}
		at := func(x *history.Event) time.Time { return x.At }
		out.All = append(out.All, Refusal{r, span.New(e.At, until(all[i+1:], again, at, log.Period.To))})
	}
	return out
}

// meets reports whether a refusal is of requests that a role makes: reporters apply, and in the conditions form they read before.
func (rs *Refusals) meets(r Refusal, role string) bool {
	reads := role == history.RoleReporter && r.Verb != "" && r.Verb != "patch"
	return r.Affects(role) && (!reads || r.Verb == "get" && rs.form == history.FormConditions)
}

// of is when requests of a role could be refused by the API server of a node; with no server, by any. A credential that has expired is that of the
// reporter of node alone. A lost instant is lost, however short it was.
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
