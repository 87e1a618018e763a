package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/backend/pool"
	"github.com/kmsharness/kmsharness/harness/cluster"
	"github.com/kmsharness/kmsharness/harness/cluster/recorder"
	"github.com/kmsharness/kmsharness/harness/netfault"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

// controlPlane is a control plane that scenarios can share one after another.
type controlPlane struct {
	Ground
	*cluster.Tainted // by anything: a boot takes ten seconds, what would have to be repaired is not worth the code
	apiServers
	shape        pool.Shape
	logs         string
	mountSockets bool // Reporter.MountSockets

	cp        *Cluster
	lb        *netfault.LoadBalancer
	front     map[string]*netfault.Link // to the load balancer, by who uses it
	frontUnit *loadBalancer
	kms       *cluster.RemoteKMS
	installed map[string]bool      // manifests of these operators
	used      bool                 // by a scenario
	fleets    []*aggregatedServers // further API servers

	etcdOff, etcdPaused atomic.Bool // with the nodes
}

func (p *controlPlane) Parts() *cluster.ControlPlane {
	all := []cluster.APIServer{{Nodes: &p.nodes, Encrypted: cluster.EncryptedSecrets(), Profile: &p.profile, Plugins: p, Processes: p, Places: p}}
	for _, f := range p.fleets {
		all = append(all, cluster.APIServer{Name: f.Stub.APIServer, Nodes: &f.nodes, Encrypted: f.Encrypted(), Profile: &f.profile, Plugins: f, Processes: f, Places: f})
	}
	return &cluster.ControlPlane{Traits: p.Traits(), APIServers: all, Topology: p, Network: p, Storage: p.cp.Storage, Credentials: p.cp.Authority, Recording: p, KMS: p.kms,
		ClientServer: "https://" + p.front[cluster.FromClient].Addr(), MarkDirty: p.MarkDirty,
		Installed: p.installed, CRDs: p.shape.CRDs}
}

func (p *controlPlane) server(node string) (NodeServer, error) {
	if n := p.nodes.Get(node); n != nil {
		return n.Server.(apiServer).Server.(NodeServer), nil
	}
	return nil, fmt.Errorf("node %s: there are %v", node, p.nodes.Names())
}

func (p *controlPlane) servers() (all []NodeServer) {
	for _, n := range p.nodes.List() {
		all = append(all, n.Server.(apiServer).Server.(NodeServer))
	}
	return all
}

func (p *controlPlane) Traits() cluster.Traits {
	t := p.Ground.Traits()
	if p.shape.Timing == scenario.TimingProduction {
		t.Timing, t.Takeover = contract.DefaultTiming(), cluster.SlowTakeover
	}
	t.Dir, t.Streaming, t.Host = p.dir, p.shape.Streams(), p.Machine().Host()
	return t
}

func (p *controlPlane) Logs() []cluster.LogDir { return []cluster.LogDir{{Dir: p.logs}} }

func (p *controlPlane) Vacate(context.Context) string { return p.Dirty() }

// Close implements pool.Plane, and is not the ground's. It is safe for a plane that was not booted to its end.
func (p *controlPlane) Close(ctx context.Context) error {
	p.KillAll()
	errs := p.close()
	for _, f := range p.fleets {
		for _, g := range append(f.seconds, f) {
			errs = append(errs, g.close()...)
		}
		errs = append(errs, f.lb.Close())
	}
	for _, l := range p.front {
		errs = append(errs, l.Close())
	}
	if p.lb != nil {
		errs = append(errs, p.lb.Close())
	}
	if p.cp != nil {
		errs = append(errs, p.cp.Servers.Close(ctx))
	}
	if p.kms != nil {
		p.kms.Close()
	}
	errs = append(errs, p.Ground.Close(ctx))
	return errors.Join(append(errs, os.RemoveAll(p.dir))...)
}

// Collect implements cluster.Recording: what this plane has beyond objects are logs, and those are always kept.
func (p *controlPlane) Collect(context.Context, string, func(string)) error { return nil }

// explain keeps the logs of a plane that did not come up.
func explain(_ context.Context, p *controlPlane, failed error, dir string) string {
	return pool.Explain(dir, failed, "", errors.Join(os.MkdirAll(dir, 0o755), recorder.CopyLogs(p.Logs(), dir)))
}
