package controller

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kmsharness/kmsharness/aggregator/core"
)

// work is one term: from the first look until ctx ends. The memory begins anew with it, because what an earlier term
// knew may be long out of date.
func (c *Controller) work(ctx context.Context) {
	q := newQueue()
	c.trigger.use(q)
	defer c.trigger.use(nil)
	defer c.metrics.forget()
	defer context.AfterFunc(ctx, q.ShutDown)()
	defer q.ShutDown()
	q.Add(theKey)
	for memory := (core.Memory{}); ctx.Err() == nil; {
		key, down := q.Get()
		if down {
			return
		}
		memory = c.step(ctx, q, memory)
		q.Done(key)
	}
}

// step looks, decides, and carries it out. A failure is tried again soon; the next look decides anew.
func (c *Controller) step(ctx context.Context, q queue, memory core.Memory) core.Memory {
	since := c.trigger.seen()
	d, wrote, err := c.decide(ctx, memory)
	if err != nil {
		if ctx.Err() == nil {
			c.Log.Warn("not carried out, will be tried again", "error", err)
			q.AddRateLimited(theKey)
		}
		return d.Memory
	}
	q.Forget(theKey)
	if wrote && !since.IsZero() {
		c.metrics.latency.Observe(c.Clock.Since(since).Seconds())
	}
	q.AddAfter(theKey, wakeAfter(d.NextWake, c.Clock.Now(), c.Interval))
	return d.Memory
}

// wakeAfter is when to look again at the latest, although nothing happens, and next is zero where the clock changes nothing more: a
// timer does not notice that the clock is set. One that was behind would make everything that is due late by as much, and a report
// that was stale by one that was ahead would stay so until the next one comes.
func wakeAfter(next, now time.Time, interval time.Duration) time.Duration {
	latest := max(interval/2, time.Millisecond)
	if next.IsZero() {
		return latest
	}
	return min(max(next.Sub(now), time.Millisecond), latest)
}

// decide looks at the caches, and at the API server itself before it writes: after an outage the caches are old, and
// from them every report would be called stale. So the caches say when to look, and never what to write.
func (c *Controller) decide(ctx context.Context, memory core.Memory) (d core.Decision, wrote bool, err error) {
	d.Memory = memory
	in, ok := c.input(c.cached())
	if !ok {
		return d, false, nil // the object's creation triggers the next step
	}
	if d = c.Decide(in, memory); c.writes(d) {
		v, err := c.live(ctx)
		if err != nil {
			return core.Decision{Memory: memory}, false, err
		}
		if in, ok = c.input(v); !ok {
			return core.Decision{Memory: memory}, false, nil
		}
		d = c.Decide(in, memory)
	}
	c.metrics.show(in, d)
	d.Memory, wrote, err = c.carryOut(ctx, in, d)
	return d, wrote, err
}

// writes is true when a decision asks for a write that can be made.
func (c *Controller) writes(d core.Decision) bool {
	return d.WriteRollups || !d.Remove.Empty() || d.WriteClusterOperator && c.operator.latest() != nil
}

// exists logs once when an object is missing, and once when it is there again.
func (c *Controller) exists(what string, o *unstructured.Unstructured) bool {
	if missing := o == nil; missing != c.absent[what] {
		c.absent[what] = missing
		c.Log.Info("object to write to", "object", what, "exists", !missing)
	}
	return o != nil
}

// carryOut writes the rollups first: they carry the news. A removal that fails does not hold them up, and the
// ClusterOperator is only told what the CR already says: not that rollups are gone which could not be removed.
func (c *Controller) carryOut(ctx context.Context, in core.Input, d core.Decision) (m core.Memory, wrote bool, err error) {
	m = d.Memory
	var rollupErr, removeErr, unionErr error
	if d.WriteRollups {
		if rollupErr = c.writeRollups(ctx, d.Rollups); rollupErr == nil {
			d = c.unite(in, d)
		}
	}
	if !d.Remove.Empty() {
		if removeErr = c.remove(ctx, d.Remove); removeErr == nil {
			m = m.Removed(d.Remove.Nodes...)
			d = c.unite(in, d)
		}
	}
	writeUnion := d.WriteClusterOperator && c.exists("clusteroperators/"+c.Operator.ClusterOperator, c.operator.latest())
	kept := removeErr != nil && len(d.Remove.Conditions) > 0
	if writeUnion && rollupErr == nil && !kept {
		unionErr = c.writeUnion(ctx, d.ClusterOperator)
	}
	return m, d.WriteRollups || writeUnion, errors.Join(rollupErr, removeErr, unionErr)
}

// unite decides anew what the ClusterOperator should say, once the rollups are written or removed: by then somebody may have changed another
// condition of the CR, and the union of an old one with a new rollup, or without an old rollup, never stood there.
func (c *Controller) unite(in core.Input, d core.Decision) core.Decision {
	if cr := c.cr.latest(); cr != nil {
		in.Observed.Conditions = core.ReadConditions(cr.Object)
		now := c.Decide(in, d.Memory)
		d.ClusterOperator, d.WriteClusterOperator = now.ClusterOperator, now.WriteClusterOperator
	}
	return d
}
