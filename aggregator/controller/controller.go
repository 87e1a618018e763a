package controller

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/util/connrotation"
	"k8s.io/utils/clock"

	"github.com/kmsharness/kmsharness/aggregator/core"
	"github.com/kmsharness/kmsharness/aggregator/reconcile"
	"github.com/kmsharness/kmsharness/internal/informer"
	"github.com/kmsharness/kmsharness/reporter/publish"
)

// Controller keeps the rollups of one operator's reports.
type Controller struct {
	Config
	client   dynamic.Interface
	dialer   *connrotation.Dialer // of all connections
	liveness *liveness
	trigger  *trigger
	cr       *object
	operator *object // the ClusterOperator
	config   *object // apiservers.config.openshift.io; nil when KMS is always active
	expected *listed
	nodes    *informer.Cache // that expected looks into
	health   *object         // the EncryptionHealth; nil without reporters that stream
	reports  *reportServer   // nil without reporters that stream
	metrics  *metrics
	absent   map[string]bool // objects that were missing in the last pass, to log it once
}

// New prepares a controller; nothing is contacted before Run.
func New(c Config) (*Controller, error) {
	dialer := connrotation.NewDialer(dial)
	c.REST = tune(c.REST)
	c.REST.Dial = dialer.DialContext
	if c.Clock == nil {
		c.Clock = clock.RealClock{}
	}
	live := &liveness{clock: c.Clock, state: reconcile.Liveness{Interval: c.Interval}}
	c.REST.Wrap(live.wrap)
	client, err := dynamic.NewForConfig(c.REST)
	if err != nil {
		return nil, fmt.Errorf("client: %w", err)
	}
	out := &Controller{Config: c, client: client, dialer: dialer, liveness: live, trigger: &trigger{clock: c.Clock}, absent: map[string]bool{}}
	if out.metrics, err = newMetrics(c.Registry); err != nil {
		return nil, err
	}
	return out, out.mirrors()
}

func (c *Controller) mirrors() error {
	nodes, err := expectedSource(c.REST, c.client, c.Expected)
	if err != nil {
		return err
	}
	c.nodes = informer.New(nodes, c.trigger.changed)
	c.expected = &listed{informerCache: c.nodes, clock: c.Clock}
	c.cr = c.object(operatorGVR(c.Operator), core.OperatorObject)
	c.operator = c.object(clusterOperatorGVR(), c.Operator.ClusterOperator)
	if c.Streaming != nil {
		applier, err := publish.NewApplier(c.REST, publish.Operator(c.Operator.Name))
		if err != nil {
			return err
		}
		c.health, c.reports = c.object(healthGVR(), c.Operator.Name), &reportServer{c: c, applier: applier}
	}
	if !c.AlwaysActive {
		c.config = c.object(apiServerGVR(), core.OperatorObject)
	}
	return nil
}

func (c *Controller) object(gvr schema.GroupVersionResource, name string) *object {
	m := informer.New(one(c.client, gvr, name), c.trigger.changed)
	return &object{informerCache: m, resource: c.client.Resource(gvr), key: name, clock: c.Clock}
}

// Run works until ctx ends, and returns only when nothing of it runs any more. A lease that it holds is released.
func (c *Controller) Run(ctx context.Context) (err error) {
	var wg sync.WaitGroup
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for _, m := range c.all() {
		wg.Go(func() { m.Run(ctx) })
	}
	wg.Go(func() { c.checkLiveness(ctx) })
	var served error
	if c.reports != nil {
		wg.Go(func() {
			if served = c.reports.serve(ctx); served != nil {
				cancel()
			}
		})
	}
	defer func() {
		cancel()
		wg.Wait()
		err = errors.Join(err, served)
	}()
	if err := c.WaitSynced(ctx); err != nil {
		return nil // stopped before the first list: there is nothing to undo
	}
	c.Log.Info("caches synced", "operator", c.Operator.Name)
	if c.Election == nil {
		c.work(ctx)
		return nil
	}
	return c.lead(ctx)
}

// WaitSynced returns once every cache holds its first list. Nothing is decided before.
func (c *Controller) WaitSynced(ctx context.Context) error {
	for _, m := range c.all() {
		if err := m.WaitSynced(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Synced says whether every cache holds its first list.
func (c *Controller) Synced() bool {
	for _, m := range c.all() {
		if !m.Synced() {
			return false
		}
	}
	return true
}

func (c *Controller) all() []*informer.Cache {
	out := []*informer.Cache{c.cr.informerCache, c.operator.informerCache, c.nodes}
	for _, o := range []*object{c.config, c.health} {
		if o != nil {
			out = append(out, o.informerCache)
		}
	}
	return out
}
