package controller

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// pulse asks the API server for something small whenever nothing else has shown for a period that it has its etcd, until ctx ends, and
// closes every connection when no answer comes:
// whoever uses one dials anew, and the load balancer picks another API server. A connection stays with its API server for as long
// as it lives, and one that lost etcd answers pings and keeps watches open on which nothing happens any more. Only a read that goes
// to etcd tells. (The kubelet does the same when it cannot renew its lease.)
func (c *Controller) pulse(ctx context.Context) {
	retry := time.Duration(0)
	for ctx.Err() == nil {
		again := pulsePeriod(c.Interval) - c.heard.ago()
		if again > 0 {
			c.wait(ctx, again)
			continue
		}
		again, retry = pulsePeriod(c.Interval), min(max(2*retry, pulseRetryMin), pulseRetryMax)
		if err := c.answers(ctx); err != nil && ctx.Err() == nil {
			c.Log.Warn("no answer: connections are closed and dialled anew", "error", err)
			c.metrics.redials.Inc()
			c.dialer.CloseAll()
			again = retry
		} else {
			retry = 0
		}
		c.wait(ctx, again)
	}
}

// wait is for d, or until ctx ends.
func (c *Controller) wait(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-c.Clock.After(d):
	}
}

// pulsePeriod is the time between two questions: a sixth of the reporters' interval, within bounds. With production's 30 s that
// is one small read in five seconds, and none from an aggregator that renews or watches a lease more often.
func pulsePeriod(interval time.Duration) time.Duration {
	return min(max(interval/6, pulseMin), pulseMax)
}

// answers is nil if an API server read from etcd. A refusal is an answer, too; an error of the server's own is none. Where an API server
// asks to be left alone for a while (429), client-go waits and asks again until the deadline, so that what was answered shows elsewhere.
func (c *Controller) answers(ctx context.Context) error {
	began := c.Clock.Now()
	ctx, cancel := context.WithTimeout(ctx, pulseTimeout)
	defer cancel()
	_, err := c.client.Resource(clusterOperatorGVR()).Get(ctx, c.Operator.ClusterOperator, metav1.GetOptions{})
	if c.heard.throttledSince(began) {
		return nil
	}
	if status := apierrors.APIStatus(nil); err == nil || errors.As(err, &status) && status.Status().Code < http.StatusInternalServerError {
		return nil
	}
	return fmt.Errorf("read clusteroperators/%s: %w", c.Operator.ClusterOperator, err)
}
