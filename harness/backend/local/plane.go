package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

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

// shape is what planes that can stand for each other have in common.
type shape struct {
	nodes  int
	keyIDs string // joined
}

// Who uses the load balancer.
const (
	fromAggregator = "aggregator"
	fromClient     = "client"
)

// nodeName is the i-th node's, from 1.
func nodeName(i int) string { return fmt.Sprintf("cp-%d", i) }

// boot starts a plane. On error everything that was started is gone.
func boot(ctx context.Context, s shape, keyIDs []string, dir string, binaries assets.Binaries, programs *programs, runDir string) (_ *plane, err error) {
	p := &plane{shape: s, dir: dir, logs: filepath.Join(dir, "logs"), programs: programs, binaries: binaries,
		front: map[string]*netfault.Link{}, installed: map[string]bool{}, nodes: map[string]*node{}, names: map[string]history.Process{}}
	ctx, cancel := context.WithTimeout(ctx, bootTimeout)
	defer cancel()
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("boot a control plane with %d API servers: %w", s.nodes, err), p.close(context.WithoutCancel(ctx)))
		}
	}()
	if err := os.MkdirAll(p.logs, 0o700); err != nil {
		return nil, err
	}
	p.supervisor = process.New(process.Options{RunDir: runDir, OnChange: p.changed})
	if err := p.makeControlPlane(); err != nil {
		return nil, err
	}
	if p.kms, err = p.startRemoteKMS(ctx); err != nil {
		return nil, err
	}
	return p, p.start(ctx, keyIDs)
}

func (p *plane) makeControlPlane() (err error) {
	data := filepath.Join(p.dir, "data")
	if err := os.MkdirAll(data, 0o700); err != nil {
		return err
	}
	p.cp, err = controlplane.New(controlplane.Options{
		Binaries: p.binaries, Supervisor: p.supervisor, Dir: data, LogDir: p.logs, AuditPolicy: auditPolicy(),
		EncryptionPoll: encryptionPoll,
	})
	if err != nil {
		return err
	}
	p.register(history.Process{Role: history.RoleEtcd}, "etcd")
	if p.lb, err = netfault.NewLoadBalancer("load balancer", 0); err != nil {
		return err
	}
	for _, from := range []string{fromAggregator, fromClient} {
		if p.front[from], err = netfault.NewLink(from+" to load balancer", p.lb.Addr()); err != nil {
			return err
		}
	}
	return nil
}

// start brings up nodes: plugins first, because an API server that meets a dead plugin takes 10 s longer.
func (p *plane) start(ctx context.Context, keyIDs []string) error {
	plugins, starting := errgroup.WithContext(ctx)
	for i := range p.shape.nodes {
		plugins.Go(func() error {
			_, err := p.addNode(starting, nodeName(i+1), keyIDs)
			return err
		})
	}
	if err := plugins.Wait(); err != nil {
		return err
	}
	for i := range p.shape.nodes {
		if err := p.lb.Add(nodeName(i+1), p.nodes[nodeName(i+1)].server.Addr()); err != nil {
			return err
		}
	}
	return p.cp.Start(ctx, controlplane.Ready)
}

// register makes the changes of processes of a name known under an identity.
func (p *plane) register(identity history.Process, name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.names[name] = identity
}

// newChild makes a place for a process of this plane.
func (p *plane) newChild(c *child) *child {
	c.supervisor = p.supervisor
	p.register(c.identity, nameOf(c.identity))
	return c
}

// changed is told by the supervisor what happens to processes.
func (p *plane) changed(c process.Change) {
	p.mu.Lock()
	identity, known := p.names[c.Name]
	listener := p.listener
	p.mu.Unlock()
	if !known || listener == nil {
		return
	}
	identity.PID, identity.State = c.PID, stateAfter(c)
	if c.Exit != nil {
		identity.Detail = c.Exit.String()
	}
	listener(c.Time, &identity)
}

// stateAfter is the history's word for a change.
func stateAfter(c process.Change) string {
	switch c.Cause {
	case process.CauseStart:
		return history.ProcessStarted
	case process.CausePause:
		return history.ProcessPaused
	case process.CauseResume:
		return history.ProcessResumed
	case process.CauseStop:
		return history.ProcessStopped
	case process.CauseKill:
		return history.ProcessKilled
	default:
		return history.ProcessExited
	}
}

// listen passes changes of processes on; nil ends it.
func (p *plane) listen(f func(at time.Time, p *history.Process)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.listener = f
}

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
