package virtual

import (
	"errors"
	"net/http"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/cluster"
	"github.com/kmsharness/kmsharness/harness/cluster/virtual/apiserver"
	"github.com/kmsharness/kmsharness/harness/history"
)

// refusals are the errors with which API servers answer requests of the system under test. They are decided by the requests that come: a watch
// that is open goes on.
type refusals struct {
	mu  sync.Mutex
	all []*refusal
}

type refusal struct {
	what history.Refusal
	left int // requests; 0: any number
	over func(history.Refusal)
	last *time.Timer // nil: it has no end
}

// begin puts a refusal in force. The newer takes the place of the older of the same kind.
func (r *refusals) begin(f *refusal, lasting time.Duration) {
	what := f.what
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = slices.DeleteFunc(r.all, func(old *refusal) bool {
		same := old.what.Role == what.Role && old.what.Object == what.Object && old.what.Node == what.Node && old.what.Verb == what.Verb && old.what.Mode == what.Mode
		if same {
			old.stop()
		}
		return same
	})
	r.all = append(r.all, f)
	if lasting > 0 {
		f.last = time.AfterFunc(lasting, func() { r.end(func(o *refusal) bool { return o == f }) })
	}
}

func (f *refusal) stop() {
	if f.last != nil {
		f.last.Stop()
	}
}

// end removes the refusals that match, and stops them. It calls over without the lock, because over records.
func (r *refusals) end(match func(*refusal) bool) {
	r.mu.Lock()
	var ended []*refusal
	r.all = slices.DeleteFunc(r.all, func(f *refusal) bool {
		if match(f) {
			ended = append(ended, f)
		}
		return match(f)
	})
	r.mu.Unlock()
	for _, f := range ended {
		f.stop()
		f.over(f.what)
	}
}

// answer is the error with which the API server of a node answers a request; nil: none.
func (r *refusals) answer(node string, q *apiserver.Request) error {
	r.mu.Lock()
	i := slices.IndexFunc(r.all, func(f *refusal) bool { return f.meets(node, q) })
	if i < 0 {
		r.mu.Unlock()
		return nil
	}
	f := r.all[i]
	last := f.left == 1
	f.left = max(f.left-1, 0)
	r.mu.Unlock()
	if last {
		r.end(func(o *refusal) bool { return o == f })
	}
	return refusalError(f.what, q)
}

func (f *refusal) meets(node string, q *apiserver.Request) bool {
	role := roleOf(q.User.GetName())
	writes := slices.Contains([]string{"create", "update", "patch", "delete"}, q.Verb)
	meant := role != "" && (f.what.Role == role || f.what.Role == "" && role != history.RoleOperator)
	if f.what.Object != "" {
		meant = writes && f.what.Object == q.Name && q.Namespace == cluster.DataNamespace
	}
	return q.IsResourceRequest && meant && (f.what.Node == "" || f.what.Node == node) &&
		(f.what.Verb == "" || f.what.Verb == q.Verb) && (writes || f.what.Mode != history.RefuseWebhookTimeout)
}

// roleOf is the role of a user of the system under test; empty for all others.
func roleOf(user string) string {
	switch user {
	case contract.AggregatorIdentity:
		return history.RoleAggregator
	case contract.OperatorIdentity:
		return history.RoleOperator
	}
	if _, ok := contract.NodeOfReporter(user, ""); ok {
		return history.RoleReporter
	}
	return ""
}

// refusalError is what a real kube-apiserver says.
func refusalError(f history.Refusal, q *apiserver.Request) error {
	resource := q.Key().Resource.GroupResource()
	switch f.Mode {
	case history.RefuseForbidden:
		return q.Forbidden()
	case history.RefuseTooManyRequests:
		return apierrors.NewTooManyRequests("Too many requests, please try again later.", int(f.RetryAfter/time.Second))
	case history.RefuseLeaderChanged:
		return apierrors.NewInternalError(errors.New("etcdserver: leader changed"))
	case history.RefuseWebhookTimeout:
		return apierrors.NewInternalError(errors.New(`failed calling webhook "validate.policy.example.com": failed to call webhook: ` +
			`Post "https://policy.policy-system.svc:443/validate?timeout=10s": context deadline exceeded`))
	case history.RefuseUnavailable:
		return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: http.StatusServiceUnavailable, Reason: metav1.StatusReasonServiceUnavailable,
			Message: "the server is currently unable to handle the request"}}
	}
	return apierrors.NewTimeoutError("request did not complete within requested timeout - context deadline exceeded ("+resource.String()+")", 0)
}
