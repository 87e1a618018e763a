package local

import (
	"cmp"
	"context"
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/kmsharness/kmsharness/harness/backend/live"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/netfault"
)

// controlPlane is a control plane that scenarios can share one after another.
type controlPlane struct {
	Ground
	network
	shape        Shape
	dir          string // short: sockets are below it
	logs         string
	mountSockets bool // Reporter.MountSockets

	cp        Cluster
	lb        *netfault.LoadBalancer
	streams   *streams                  // nil where reporters do not stream
	front     map[string]*netfault.Link // to the load balancer, by who uses it
	frontUnit *loadBalancer
	kms       *live.RemoteKMS
	nodes     live.Nodes
	profile   live.Profile                     // of the plugins
	installed map[string]bool                  // manifests of these operators
	manifest  func(*unstructured.Unstructured) // Options.Manifest
	used      bool                             // by a scenario
	states    live.NodeStates
	fleets    []*aggregatedServers // further API servers
	repairs   repair

	etcdOff, etcdPaused atomic.Bool // with the nodes

	mu    sync.Mutex
	links map[string]*netfault.Link // from each node's reporter to its API server, or to the load balancer
	dirty string                    // why it cannot be used again; empty: it can
}

var (
	_ live.ControlPlane = (*controlPlane)(nil)
	_ live.StaleLister  = (*controlPlane)(nil)
)

// Traits implements live.ControlPlane.
func (p *controlPlane) Traits() live.Traits {
	t := p.Ground.Traits()
	t.Dir, t.Streaming, t.Host = p.dir, p.shape.streams(), p.Machine().Host()
	return t
}

// Nodes implements live.ControlPlane.
func (p *controlPlane) Nodes() *live.Nodes { return &p.nodes }

// Logs implements live.ControlPlane.
func (p *controlPlane) Logs() []live.LogDir { return []live.LogDir{{Dir: p.logs}} }

// KMS implements live.ControlPlane.
func (p *controlPlane) KMS() *live.RemoteKMS { return p.kms }

// MarkDirty implements live.ControlPlane. A boot takes ten seconds: what would have to be repaired is not worth the code.
func (p *controlPlane) MarkDirty(d live.Taint) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dirty = string(d)
}

// Vacate implements pool.Plane.
func (p *controlPlane) Vacate(context.Context) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return cmp.Or(p.Kept(), p.dirty)
}

// Kubeconfig implements live.ControlPlane.
func (p *controlPlane) Kubeconfig(user string, groups []string, server string) ([]byte, error) {
	return p.cp.Kubeconfig(user, groups, server)
}

// Certificate implements live.ControlPlane.
func (p *controlPlane) Certificate(user string, groups []string, life time.Duration) (text []byte, expires time.Time, err error) {
	return p.cp.Certificate(user, groups, life)
}

// Serving implements live.ControlPlane.
func (p *controlPlane) Serving(name string, names ...string) (cert, key []byte, err error) {
	return p.cp.Serving(name, names...)
}

// RESTConfig implements live.ControlPlane.
func (p *controlPlane) RESTConfig(user string, groups []string, server string) (*rest.Config, error) {
	return p.cp.RESTConfig(user, groups, server)
}

// ClientServer implements live.ControlPlane.
func (p *controlPlane) ClientServer() string { return "https://" + p.front[live.FromClient].Addr() }

// Etcd implements live.ControlPlane: there is one member, whatever the node.
func (p *controlPlane) Etcd(string) ([]live.Target, error) {
	return []live.Target{{Unit: p.cp.Etcd(), Identity: history.Process{Role: history.RoleEtcd}}}, nil
}

// LoadBalancer implements live.ControlPlane.
func (p *controlPlane) LoadBalancer() live.Unit { return p.frontUnit }

// ReadEtcd implements live.ControlPlane.
func (p *controlPlane) ReadEtcd(ctx context.Context, key string) ([]byte, error) {
	return p.cp.ReadEtcd(ctx, key)
}

// RangeEtcd implements live.ControlPlane.
func (p *controlPlane) RangeEtcd(ctx context.Context, r live.Range) ([]live.KeyValue, bool, error) {
	return p.cp.RangeEtcd(ctx, r)
}

// Close implements pool.Plane, and is not the ground's. It is safe for a plane that was not booted to its end.
func (p *controlPlane) Close(ctx context.Context) error {
	var errs []error
	p.KillAll()
	for _, n := range p.nodes.List() {
		n.Close()
	}
	for _, f := range p.fleets {
		errs = append(errs, f.close())
	}
	for _, l := range p.front {
		errs = append(errs, l.Close())
	}
	for _, l := range p.links {
		errs = append(errs, l.Close())
	}
	if p.streams != nil {
		errs = append(errs, p.streams.close())
	}
	if p.lb != nil {
		errs = append(errs, p.lb.Close())
	}
	if p.cp != nil {
		errs = append(errs, p.cp.Close(ctx))
	}
	if p.kms != nil {
		p.kms.Close()
	}
	errs = append(errs, p.Ground.Close(ctx))
	return errors.Join(append(errs, os.RemoveAll(p.dir))...)
}
