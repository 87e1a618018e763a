package sim

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/backend/sim/kernel"
	"github.com/kmsharness/kmsharness/harness/history"
)

// refusal is that API servers answer requests of the system under test with an error. It is decided by the requests that they get: what
// is under way when it begins may be refused, and a watch that is open goes on.
//
// Left out is how long the real causes take: a request that is refused is answered as soon as any other.
type refusal struct {
	what  history.Refusal
	left  int // requests; negative: any number
	limit *kernel.Timer
}

// of says whether two are about the same, so that the newer takes the place of the older.
func (f *refusal) same(as *refusal) bool {
	a, b := f.what, as.what
	return a.Role == b.Role && a.Node == b.Node && a.Verb == b.Verb && a.Mode == b.Mode
}

// begin puts it in force, for so long or, if that is 0, until it is ended.
func (w *world) beginRefusal(f *refusal, lasting time.Duration) {
	w.refusals = slices.DeleteFunc(w.refusals, func(old *refusal) bool {
		if old.same(f) {
			old.limit.Stop()
		}
		return old.same(f)
	})
	w.refusals = append(w.refusals, f)
	if lasting > 0 {
		f.limit = w.k.After(lasting, func() { w.endRefusals(func(o *refusal) bool { return o == f }) })
	}
	configured := f.what
	w.log.Record(w.k.Now(), "backend", &configured)
}

// endRefusals ends those that match.
func (c *cluster) endRefusals(match func(*refusal) bool) {
	c.refusals = slices.DeleteFunc(c.refusals, func(f *refusal) bool {
		if !match(f) {
			return false
		}
		f.limit.Stop()
		configured := f.what
		configured.Over = true
		c.log.Record(c.k.Now(), "backend", &configured)
		return true
	})
}

// refusing is the refusal that a request meets at an API server; nil if there is none.
func (c *cluster) refusing(s *server, r *request) *refusal {
	for _, f := range c.refusals {
		if f.meets(s, r) {
			return f
		}
	}
	return nil
}

func (f *refusal) meets(s *server, r *request) bool {
	role := roleOf(r.user)
	if r.relayed != "" {
		role = history.RoleReporter
	}
	switch {
	case role == "" || f.what.Role != "" && f.what.Role != role:
		return false
	case f.what.Node != "" && r.relayed != "":
		return f.what.Node == r.relayed && (f.what.Verb == "" || f.what.Verb == r.verb)
	case f.what.Node != "" && (s == nil || f.what.Node != s.node.name):
		return false
	case f.what.Mode == history.RefuseWebhookTimeout && !r.writes():
		return false
	}
	return f.what.Verb == "" || f.what.Verb == r.verb
}

func (r *request) writes() bool {
	return r.verb == verbPatch || r.verb == verbCreate || r.verb == verbUpdate || r.verb == verbDelete
}

// roleOf is the role of a user of the system under test; empty for all others.
func roleOf(user string) string {
	if user == contract.AggregatorIdentity {
		return history.RoleAggregator
	}
	if _, ok := contract.NodeOfReporter(user, ""); ok {
		return history.RoleReporter
	}
	return ""
}

// refuse is the answer, and counts it.
func (c *cluster) refuse(f *refusal, r *request) reply {
	if f.left > 0 {
		if f.left--; f.left == 0 {
			defer c.endRefusals(func(o *refusal) bool { return o == f })
		}
	}
	return reply{code: f.what.Code, text: refusalText(f.what.Mode, r), again: f.what.RetryAfter}
}

// refusedError is what a client makes of a refusal of a watch.
type refusedError struct{ reply }

func (e *refusedError) Error() string {
	return fmt.Sprintf("%d %s: %s", e.code, http.StatusText(e.code), e.text)
}

// refusalText is what a real kube-apiserver says: in its Status, or, where it sends none, in the body.
func refusalText(mode string, r *request) string {
	switch mode {
	case history.RefuseForbidden:
		return forbiddenText(r)
	case history.RefuseTooManyRequests:
		return "Too many requests, please try again later."
	case history.RefuseLeaderChanged:
		return "etcdserver: leader changed"
	case history.RefuseWebhookTimeout:
		return `Internal error occurred: failed calling webhook "validate.policy.example.com": failed to call webhook: ` +
			`Post "https://policy.policy-system.svc:443/validate?timeout=10s": context deadline exceeded`
	case history.RefuseUnavailable:
		return "the server is currently unable to handle the request"
	}
	return "Timeout: request did not complete within requested timeout - context deadline exceeded"
}

// forbiddenText is what the RBAC authorizer's refusal looks like.
func forbiddenText(r *request) string {
	resource := r.key.Resource.Resource
	if r.subresource != "" {
		resource += "/" + r.subresource
	}
	scope := "at the cluster scope"
	if r.key.Namespace != "" {
		scope = fmt.Sprintf("in the namespace %q", r.key.Namespace)
	}
	what := cmp.Or(strings.TrimSuffix(resourceName(r.key.Resource)+" "+quotedOr(r.key.Name), " "), resource)
	return fmt.Sprintf("%s is forbidden: User %q cannot %s resource %q in API group %q %s", what, r.user, r.verb, resource, r.key.Resource.Group, scope)
}

func quotedOr(name string) string {
	if name == "" {
		return ""
	}
	return fmt.Sprintf("%q", name)
}
