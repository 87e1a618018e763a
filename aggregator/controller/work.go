package controller

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kmsharness/kmsharness/aggregator/core"
	"github.com/kmsharness/kmsharness/aggregator/reconcile"
	"github.com/kmsharness/kmsharness/contract"
)

// work is one term as leader: from the first pass until ctx ends.
func (c *Controller) work(ctx context.Context) {
	q := newQueue()
	c.trigger.use(q)
	defer c.trigger.use(nil)
	defer c.metrics.forget()
	defer context.AfterFunc(ctx, q.ShutDown)()
	defer q.ShutDown()
	q.Add(theKey)
	config, t := c.reconciling(), (*term)(nil)
	if c.reports != nil {
		var end func()
		t, end = c.reports.lead(ctx)
		defer end()
		config.Streams = t.sessions
	}
	for r := reconcile.New(config); ctx.Err() == nil; {
		key, down := q.Get()
		if down {
			return
		}
		c.pass(ctx, q, r, t)
		q.Done(key)
	}
}

func (c *Controller) reconciling() reconcile.Config {
	return reconcile.Config{
		Operator: c.Operator, Interval: c.Interval, AlwaysActive: c.AlwaysActive, Union: c.Union, Decide: c.Decide,
		Latest: c.Latest, Decided: c.metrics.show,
	}
}

// pass makes one pass. One that failed is made again soon, and decides anew.
func (c *Controller) pass(ctx context.Context, q queue, r *reconcile.Reconciler, t *term) {
	since := c.trigger.seen()
	done := c.carryOut(ctx, r, t)
	if t != nil {
		t.passed(done, c.cr.latest(), c.health.latest())
	}
	if done.Err != nil {
		if ctx.Err() == nil {
			c.Log.Warn("not carried out, will be tried again", "error", done.Err)
			c.trigger.failed()
		}
		return
	}
	q.Forget(theKey)
	if done.Wrote && !since.IsZero() {
		c.metrics.latency.Observe(c.Clock.Since(since).Seconds())
	}
	// A wake-up that is due already is not made at once: the core and the timer may disagree about it for an instant.
	q.AddAfter(theKey, max(reconcile.WakeAfter(done.NextWake, c.Clock.Now(), c.Interval), time.Millisecond))
}

// carryOut does what a pass asks for until it is done.
func (c *Controller) carryOut(ctx context.Context, r *reconcile.Reconciler, t *term) reconcile.Action {
	action := r.Begin(c.Clock.Now())
	for {
		switch action.Kind {
		case reconcile.Refresh:
			state, err := c.Refresh(ctx, c)
			action = r.Refreshed(state, c.Clock.Now(), err)
		case reconcile.Write:
			action = r.Wrote(c.write(ctx, action.Write, t))
		default:
			return action
		}
	}
}

// Latest is the newest known state. It logs once when an object to write to is missing, and once when it is there again.
func (c *Controller) Latest() reconcile.State {
	cr, operator := c.cr.latest(), c.operator.latest()
	c.exists(c.Operator.Resource+"/"+core.OperatorObject, cr)
	c.exists("clusteroperators/"+c.Operator.ClusterOperator, operator)
	s := reconcile.State{CR: content(cr), ClusterOperator: content(operator), Nodes: expectedNodes(c.expected.latest(), c.Expected.PodNodeLabel)}
	if c.config != nil {
		s.Config = content(c.config.latest())
	}
	if c.health != nil {
		health := c.health.latest()
		c.exists(contract.HealthResource+"/"+c.Operator.Name, health)
		s.Health = content(health)
	}
	return s
}

// refresh asks the API server for everything at once.
func refresh(ctx context.Context, c *Controller) (s reconcile.State, err error) {
	ctx, cancel := context.WithTimeout(ctx, reconcile.RequestTimeout)
	defer cancel()
	group, ctx := errgroup.WithContext(ctx)
	get := func(to *map[string]any, o *object) {
		group.Go(func() error {
			result, err := o.get(ctx)
			*to = content(result)
			return err
		})
	}
	get(&s.CR, c.cr)
	get(&s.ClusterOperator, c.operator)
	if c.config != nil {
		get(&s.Config, c.config)
	}
	if c.health != nil {
		get(&s.Health, c.health)
	}
	group.Go(func() error {
		items, err := c.expected.get(ctx)
		s.Nodes = expectedNodes(items, c.Expected.PodNodeLabel)
		return err
	})
	if err := group.Wait(); err != nil {
		return reconcile.State{}, fmt.Errorf("read from the API server before a write: %w", err)
	}
	return s, nil
}

func (c *Controller) exists(what string, o *unstructured.Unstructured) {
	if missing := o == nil; missing != c.absent[what] {
		c.absent[what] = missing
		c.Log.Info("object to write to", "object", what, "exists", !missing)
	}
}

// content is nil for an object that does not exist.
func content(o *unstructured.Unstructured) map[string]any {
	if o == nil {
		return nil
	}
	return o.Object
}
