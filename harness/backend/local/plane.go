package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/kmsharness/kmsharness/harness/assets"
	"github.com/kmsharness/kmsharness/harness/controlplane"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/netfault"
	"github.com/kmsharness/kmsharness/harness/process"
)

// plane is a control plane that scenarios can share one after another.
type plane struct {
	shape    shape
	dir      string // short: sockets are below it
	logs     string
	programs *programs
	binaries assets.Binaries

	supervisor *process.Supervisor
	cp         *controlplane.ControlPlane
	address    *address // of programs that bind a port themselves
	lb         *netfault.LoadBalancer
	front      map[string]*netfault.Link // to the load balancer, by who uses it
	kms        *remoteKMS
	installed  map[string]bool // manifests of these operators
	used       bool            // by a scenario

	mu       sync.Mutex
	nodes    map[string]*node
	names    map[string]history.Process // identities of processes by their names
	listener func(at time.Time, p *history.Process)
	dirty    string // why it cannot be used again; empty: it can
}

// Who uses the load balancer.
const (
	fromAggregator = "aggregator"
	fromClient     = "client"
)

// spoil says that the plane cannot be used again, and why.
func (p *plane) spoil(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dirty == "" {
		p.dirty = fmt.Sprintf(format, args...)
	}
}

func (p *plane) spoiled() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dirty
}

// nodeNames are sorted by name.
func (p *plane) nodeNames() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	names := make([]string, 0, len(p.nodes))
	for name := range p.nodes {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// nodeList is in the order of nodeNames.
func (p *plane) nodeList() []*node {
	var all []*node
	for _, name := range p.nodeNames() {
		if n := p.node(name); n != nil {
			all = append(all, n)
		}
	}
	return all
}

func (p *plane) node(name string) *node {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.nodes[name]
}

// admin is a client of an API server that runs.
func (p *plane) admin() (*client, error) {
	for _, n := range p.nodeList() {
		if proc := n.server.Process(); proc != nil && proc.State() == process.Running {
			return n.admin, nil
		}
	}
	return nil, errors.New("no API server runs")
}

// killAll ends every process at once: nothing of a plane that goes away is worth a clean stop.
func (p *plane) killAll() {
	if p.supervisor == nil {
		return
	}
	var all sync.WaitGroup
	for _, c := range p.supervisor.Children() {
		all.Go(func() { _ = c.Kill() }) // what is left, Close stops
	}
	all.Wait()
}

// close ends everything. It is safe for a plane that was not booted to its end.
func (p *plane) close(ctx context.Context) error {
	var errs []error
	p.killAll()
	for _, n := range p.nodeList() {
		n.admin.close()
		for _, g := range n.pluginList() {
			g.control.Close()
		}
	}
	for _, l := range p.front {
		errs = append(errs, l.Close())
	}
	if p.address != nil {
		errs = append(errs, p.address.close())
	}
	if p.lb != nil {
		errs = append(errs, p.lb.Close())
	}
	if p.cp != nil {
		errs = append(errs, p.cp.Close(ctx))
	}
	if p.kms != nil {
		p.kms.close()
	}
	if p.supervisor != nil {
		errs = append(errs, p.supervisor.Close(ctx))
	}
	return errors.Join(append(errs, os.RemoveAll(p.dir))...)
}
