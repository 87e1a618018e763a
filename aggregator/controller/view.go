package controller

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kmsharness/kmsharness/aggregator/core"
)

// kmsEncryption is the value of spec.encryption.type that makes KMS active.
const kmsEncryption = "KMS"

// view is everything that a decision rests on, from the caches or from the API server. A nil object does not exist.
type view struct {
	cr       *unstructured.Unstructured
	operator *unstructured.Unstructured
	config   *unstructured.Unstructured
	expected []any
}

// cached is the newest known state.
func (c *Controller) cached() view {
	v := view{cr: c.cr.latest(), operator: c.operator.latest(), expected: c.expected.latest()}
	if c.config != nil {
		v.config = c.config.latest()
	}
	return v
}

// live asks the API server, all at once.
func (c *Controller) live(ctx context.Context) (v view, err error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	group, ctx := errgroup.WithContext(ctx)
	get := func(to **unstructured.Unstructured, o *object) {
		group.Go(func() (err error) { *to, err = o.get(ctx); return err })
	}
	get(&v.cr, c.cr)
	get(&v.operator, c.operator)
	if c.config != nil {
		get(&v.config, c.config)
	}
	group.Go(func() (err error) { v.expected, err = c.expected.get(ctx); return err })
	if err := group.Wait(); err != nil {
		return view{}, fmt.Errorf("look at the API server before a write: %w", err)
	}
	return v, nil
}

// input is what the core decides from; ok is false while there is no CR to work on.
func (c *Controller) input(v view) (in core.Input, ok bool) {
	if !c.exists(c.Operator.Resource+"/"+core.OperatorObject, v.cr) {
		return core.Input{}, false
	}
	in = core.Input{
		Now:       c.Clock.Now(),
		Interval:  c.Interval,
		Nodes:     expectedNodes(v.expected),
		KMSActive: c.AlwaysActive || active(v.config),
		Observed:  c.reader.Read(v.cr.Object, c.Operator),
		Union:     c.Union,
	}
	if v.operator != nil {
		in.ClusterOperator = core.ReadConditions(v.operator.Object)
	}
	return in, true
}

// active is false without a configuration: no encryption.
func active(config *unstructured.Unstructured) bool {
	if config == nil {
		return false
	}
	kind, _, _ := unstructured.NestedString(config.Object, "spec", "encryption", "type")
	return kind == kmsEncryption
}
