package controller

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kmsharness/kmsharness/aggregator/core"
)

// kmsEncryption is the value of spec.encryption.type that makes KMS active.
const kmsEncryption = "KMS"

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
	in, ok := c.look()
	if !ok {
		return memory // the object's creation triggers the next step
	}
	d := core.Step(in, memory)
	c.metrics.show(in, d)
	memory, wrote, err := c.carryOut(ctx, d)
	if err != nil && ctx.Err() == nil {
		c.Log.Warn("write failed, will be tried again", "error", err)
		q.AddRateLimited(theKey)
		return memory
	}
	q.Forget(theKey)
	if wrote && !since.IsZero() {
		c.metrics.latency.Observe(c.Clock.Since(since).Seconds())
	}
	if !d.NextWake.IsZero() {
		q.AddAfter(theKey, max(d.NextWake.Sub(c.Clock.Now()), time.Millisecond))
	}
	return memory
}

// look takes the newest known state; ok is false while there is no CR to work on.
func (c *Controller) look() (in core.Input, ok bool) {
	cr := c.cr.latest()
	if !c.exists(c.Operator.Resource+"/"+core.OperatorObject, cr) {
		return core.Input{}, false
	}
	in = core.Input{
		Now:       c.Clock.Now(),
		Interval:  c.Interval,
		Nodes:     expectedNodes(c.expected.List()),
		KMSActive: c.active(),
		Observed:  core.Read(cr.Object, c.Operator),
	}
	if co := c.operator.latest(); co != nil {
		in.ClusterOperator = core.ReadConditions(co.Object)
	}
	return in, true
}

func (c *Controller) active() bool {
	if c.config == nil {
		return true
	}
	item, _, _ := c.config.GetByKey(core.OperatorObject)
	config, ok := item.(*unstructured.Unstructured)
	if !ok {
		return false // no configuration: no encryption
	}
	kind, _, _ := unstructured.NestedString(config.Object, "spec", "encryption", "type")
	return kind == kmsEncryption
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
// ClusterOperator is only told what the CR already says.
func (c *Controller) carryOut(ctx context.Context, d core.Decision) (m core.Memory, wrote bool, err error) {
	m = d.Memory
	var rollupErr, removeErr, unionErr error
	if d.WriteRollups {
		rollupErr = c.writeRollups(ctx, d.Rollups)
	}
	if !d.Remove.Empty() {
		if removeErr = c.remove(ctx, d.Remove); removeErr == nil {
			m = m.Removed(d.Remove.Nodes...)
		}
	}
	writeUnion := d.WriteClusterOperator && c.exists("clusteroperators/"+c.Operator.ClusterOperator, c.operator.latest())
	if writeUnion && rollupErr == nil {
		unionErr = c.writeUnion(ctx, d.ClusterOperator)
	}
	return m, d.WriteRollups || writeUnion, errors.Join(rollupErr, removeErr, unionErr)
}
