package controller

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/kmsharness/kmsharness/aggregator/reconcile"
)

// liveness is a reconcile.Liveness that observes every answer to the aggregator.
type liveness struct {
	clock clock.PassiveClock

	mu    sync.Mutex
	state reconcile.Liveness
}

// wrap lets requests through and observes their answers.
func (l *liveness) wrap(next http.RoundTripper) http.RoundTripper { return &observed{next, l} }

type observed struct {
	next     http.RoundTripper
	liveness *liveness
}

// RoundTrip implements http.RoundTripper.
func (o *observed) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := o.next.RoundTrip(r)
	if err == nil {
		o.liveness.mu.Lock()
		defer o.liveness.mu.Unlock()
		o.liveness.state.Observe(o.liveness.clock.Now(), fromEtcd(r), answer.StatusCode)
	}
	return answer, err
}

// WrappedRoundTripper lets client-go find the transport below, to close its connections.
func (o *observed) WrappedRoundTripper() http.RoundTripper { return o.next }

// fromEtcd reports whether the API server needs etcd for an answer: for a write, or a read of a lease. A list, a watch or
// another read may come from its cache.
func fromEtcd(r *http.Request) bool {
	return r.Method != http.MethodGet || strings.Contains(r.URL.Path, "/leases/")
}

func (l *liveness) due() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state.Due(l.clock.Now())
}

func (l *liveness) alive(began time.Time, code int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state.Alive(began, code)
}

func (l *liveness) probed(alive bool) (wait time.Duration, redial bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state.Probed(alive)
}

// checkLiveness probes the API server until ctx ends, and closes every connection when no answer comes: each client
// dials anew, and the load balancer, or the choice among alternatives, picks another API server.
func (c *Controller) checkLiveness(ctx context.Context) {
	for ctx.Err() == nil {
		wait := c.liveness.due()
		if wait <= 0 {
			alive, err := c.alive(ctx)
			if ctx.Err() != nil {
				return
			}
			var redial bool
			if wait, redial = c.liveness.probed(alive); redial {
				c.Log.Warn("no answer: connections are closed and dialled anew", "object", "clusteroperators/"+c.Operator.ClusterOperator, "error", err)
				c.metrics.redials.Inc()
				if c.failover != nil {
					c.failover.Leave(ctx, err)
				}
				c.dialer.CloseAll()
			}
		}
		select {
		case <-ctx.Done():
		case <-c.Clock.After(wait):
		}
	}
}

// alive reports whether an API server read from etcd, and if not, the error.
func (c *Controller) alive(ctx context.Context) (bool, error) {
	began := c.Clock.Now()
	ctx, cancel := context.WithTimeout(ctx, reconcile.ProbeTimeout)
	defer cancel()
	_, err := c.client.Resource(clusterOperatorGVR()).Get(ctx, c.Operator.ClusterOperator, metav1.GetOptions{})
	return c.liveness.alive(began, codeOf(err)), err
}

// codeOf is the HTTP status of an answer, and 0 where there was none.
func codeOf(err error) int {
	var status apierrors.APIStatus
	switch {
	case err == nil:
		return http.StatusOK
	case errors.As(err, &status):
		return int(status.Status().Code)
	}
	return 0
}
