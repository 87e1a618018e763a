package controller

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/connrotation"
	"k8s.io/utils/clock"

	"github.com/kmsharness/kmsharness/aggregator/core"
	"github.com/kmsharness/kmsharness/aggregator/reconcile"
	"github.com/kmsharness/kmsharness/altsvc"
	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/internal/election"
	"github.com/kmsharness/kmsharness/internal/host"
	"github.com/kmsharness/kmsharness/internal/informer"
	"github.com/kmsharness/kmsharness/reporter/publish"
)

// Controller keeps the rollups of one operator's reports.
type Controller struct {
	Config
	client     dynamic.Interface
	connection *http.Client         // of all clients
	dialer     *connrotation.Dialer // of all connections
	failover   *altsvc.Services     // nil: that of the configuration alone is used
	liveness   *liveness
	trigger    *trigger
	cr         *object
	operator   *object // the ClusterOperator
	config     *object // apiservers.config.openshift.io; nil when KMS is always active
	expected   *listed
	nodes      *informer.Cache // that expected looks into
	health     *object         // the EncryptionHealth; nil without reporters that stream
	reports    *reportServer   // nil without reporters that stream
	metrics    *metrics
	absent     map[string]bool // objects that were missing in the last pass, to log it once
}

// New prepares a controller; nothing is contacted before Run.
func New(c Config) (*Controller, error) {
	dialer := connrotation.NewDialer(dial(c.Host))
	c.REST = tune(c.REST)
	c.REST.Dial = dialer.DialContext
	c.REST.Wrap(c.Host.Wrap)
	if c.Clock == nil {
		c.Clock = c.Host.Clock()
	}
	if c.Refresh == nil {
		c.Refresh = refresh
	}
	live := &liveness{clock: c.Clock, state: reconcile.Liveness{Interval: c.Interval}}
	c.REST.Wrap(live.wrap)
	var failover *altsvc.Services
	if c.Failover != nil {
		var err error
		if failover, err = altsvc.Wrap(c.REST, *c.Failover); err != nil {
			return nil, fmt.Errorf("client: %w", err)
		}
	}
	// One connection for all clients: what the liveness probe finds out of it holds for each of them.
	connection, err := rest.HTTPClientFor(c.REST)
	if err != nil {
		return nil, fmt.Errorf("client: %w", err)
	}
	client, err := dynamic.NewForConfigAndClient(c.REST, connection)
	if err != nil {
		return nil, fmt.Errorf("client: %w", err)
	}
	out := &Controller{Config: c, client: client, connection: connection, dialer: dialer, failover: failover, liveness: live, trigger: &trigger{clock: c.Clock}, absent: map[string]bool{}}
	if out.metrics, err = newMetrics(c.Registry); err != nil {
		return nil, err
	}
	return out, out.mirrors()
}

func (c *Controller) mirrors() error {
	nodes, err := expectedSource(c.REST, c.connection, c.client, c.Expected)
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
	if c.failover != nil {
		defer c.failover.Close()
	}
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

// lead works while it holds the lease, and stands by otherwise, until ctx ends.
func (c *Controller) lead(ctx context.Context) error {
	leases, err := coordination.NewForConfigAndClient(c.REST, c.connection)
	if err != nil {
		return fmt.Errorf("client for leases: %w", err)
	}
	return c.Election.Lead(ctx, leases, c.Log, func(leading context.Context) error {
		c.metrics.leader.Set(1)
		defer c.metrics.leader.Set(0)
		c.work(leading)
		return nil
	})
}

type Config struct {
	// REST is the connection to the API server; see Connection.
	REST *rest.Config
	// Failover is how other API servers are used (see the function Failover); nil: that of REST alone.
	Failover *altsvc.Options
	// Operator whose reports are rolled up.
	Operator core.Operator
	// Interval (I) of the reporters. Staleness is derived from it.
	Interval time.Duration
	// Expected selects the nodes that should report.
	Expected Expected
	// AlwaysActive treats KMS as active without looking at apiservers.config.openshift.io/cluster, for a Kubernetes
	// without that API.
	AlwaysActive bool
	// Union is how the conditions of the CR are united into those of the ClusterOperator.
	Union contract.Union
	// Election is nil for an aggregator that runs alone.
	Election *election.Options
	// Streaming is nil for reporters that write themselves.
	Streaming *Streaming
	// Log receives structured logs.
	Log *slog.Logger
	// Registry receives the metrics.
	Registry prometheus.Registerer
	// Host is the machine that the aggregator runs on.
	Host host.Host
	// Clock is the wall clock; nil for the host's.
	Clock clock.Clock
	// Decide is what the aggregator wants done; nil for core.Step. Aggregators that are wrong on purpose replace it; see
	// scenarios/mutants.
	Decide func(core.Input, core.Memory) core.Decision
	// Refresh reads everything before a write; nil for the API server itself. See Decide.
	Refresh func(context.Context, *Controller) (reconcile.State, error)
}

// Expected is the set of nodes that should report: those that match NodeSelector, or, for API servers that are
// Deployments, those that run a pod that matches PodSelector.
type Expected struct {
	NodeSelector string
	PodSelector  string // when set, NodeSelector is not used
	PodNamespace string
	// PodNodeLabel is the label of the pods that names their node, where several nodes of one API server may run on one machine; empty:
	// a pod's node is the one that it runs on.
	PodNodeLabel string
}
