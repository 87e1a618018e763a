package cluster

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

	"github.com/kmsharness/kmsharness/harness/backend/live"
	"github.com/kmsharness/kmsharness/harness/controlplane"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/netfault"
	"github.com/kmsharness/kmsharness/harness/record/tail"
	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/internal/command"
)

// controlPlane is what a run has in a cluster: pods that stand for control-plane nodes, and the hub. Scenarios use it one after another.
type controlPlane struct {
	identities
	listener
	external
	run      run
	shape    string // variant of the CRDs
	dir      string // of this machine; short: sockets are below it
	images   podImages
	args     []string // of every plugin
	token    string
	requests *requestLog
	journals *tail.Set
	stop     func() // reading journals

	nodes       live.Nodes
	kms         *live.RemoteKMS
	profile     live.Profile
	hub         *pod
	aggregators []*unit
	installed   map[string]bool

	mu    sync.Mutex
	begun bool // there may be objects
	made  int  // pods, so far
	names map[string]*nodePods
	dirty string // why it cannot be used again; empty: it can
}

// nodePods is a node of a scenario.
type nodePods struct {
	*pod
	plugins []*slot
	faulty  bool // its link to the API server has a fault
	gone    bool // it is not expected to report any more
}

var (
	_ live.ControlPlane  = (*controlPlane)(nil)
	_ live.NodeKeeper    = (*controlPlane)(nil)
	_ live.RequestLogger = (*controlPlane)(nil)
)

// newControlPlane is one of which nothing has been made.
func newControlPlane(a *access, o Options, s *scenario.Scenario, dir string) (*controlPlane, error) {
	args, err := command.Split(o.PluginArgs)
	if err != nil {
		return nil, err
	}
	authority, err := controlplane.NewAuthority()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	log, err := openRequestLog(filepath.Join(dir, "requests.jsonl"))
	if err != nil {
		return nil, err
	}
	p := &controlPlane{identities: identities{Authority: authority, access: a}, run: newRun(o.prefix()), shape: s.Topology.CRDs, dir: dir,
		images: imagesOf(o.Placing), args: args,
		requests: log, journals: tail.NewSet(), installed: map[string]bool{}, names: map[string]*nodePods{}}
	ctx, cancel := context.WithCancel(context.Background())
	var tailing sync.WaitGroup
	tailing.Go(func() {
		ticker := time.NewTicker(tailEvery)
		defer ticker.Stop()
		p.journals.Run(ctx, ticker.C)
	})
	p.stop = func() { cancel(); tailing.Wait(); _ = p.journals.Close() } // what they hold belongs to no scenario any more
	return p, nil
}

// Traits implements live.ControlPlane, and so do the others.
func (p *controlPlane) Traits() live.Traits {
	return live.Traits{Backend: Name, Timing: timing(), Tolerance: Tolerance, Takeover: live.Takeover, MaxNodes: maxNodes, Dir: p.dir,
		Namespace: p.run.name, Suffix: p.run.suffix()}
}
func (p *controlPlane) Nodes() *live.Nodes   { return &p.nodes }
func (p *controlPlane) KMS() *live.RemoteKMS { return p.kms }
func (p *controlPlane) ClientServer() string { return p.access.config.Host }

// Logs implements live.ControlPlane.
func (p *controlPlane) Logs() []live.LogDir {
	all := []live.LogDir{{Dir: p.dir, Prefix: "harness-"}}
	for _, one := range p.pods() {
		for _, volume := range []string{volumePlugins, volumeReporter, volumeAggregator, volumeKMS, "agent"} {
			if dir := one.file(volume); isDir(dir) {
				all = append(all, live.LogDir{Dir: dir, Prefix: one.name + "-"})
			}
		}
	}
	return all
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// pods are those that are connected: the hub, and those of nodes.
func (p *controlPlane) pods() []*pod {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []*pod
	if p.hub != nil {
		all = append(all, p.hub)
	}
	for _, n := range p.names {
		all = append(all, n.pod)
	}
	return all
}

// MarkDirty implements live.ControlPlane: a reset makes good what scenarios do here, unless a program could not be ended.
func (p *controlPlane) MarkDirty(d live.Taint) {
	if d != live.TaintedProgram && d != live.TaintedPower {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dirty = string(d)
}

// Vacate implements pool.ControlPlane.
func (p *controlPlane) Vacate(context.Context) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dirty
}

// Running implements live.ControlPlane.
func (p *controlPlane) Running() (all []history.Process) {
	targets := []live.Target{p.kms.Target}
	for _, n := range p.nodes.List() {
		for _, g := range n.Plugins() {
			targets = append(targets, g.Target)
		}
	}
	for _, t := range targets {
		if s := t.Status(); s.Running() {
			t.Identity.PID = s.PID
			all = append(all, t.Identity)
		}
	}
	return all
}

// RequestLogs implements live.RequestLogger.
func (p *controlPlane) RequestLogs() map[string]string {
	return map[string]string{"harness": p.requests.path, hub: p.hub.file(auditLog)}
}

// Sync implements live.RequestLogger.
func (p *controlPlane) Sync(ctx context.Context) error {
	all, ctx := errgroup.WithContext(ctx)
	for _, one := range p.pods() {
		all.Go(func() error {
			if err := one.sync(ctx); err != nil {
				return fmt.Errorf("pod %s: %w", one.name, err)
			}
			return nil
		})
	}
	return errors.Join(all.Wait(), p.journals.Poll())
}

// AggregatorPlace implements live.ControlPlane.
func (p *controlPlane) AggregatorPlace(i int) live.Place {
	return live.Place{
		Server: loopback, Dir: p.hub.file(volumeAggregator), SeenDir: inPod(volumeAggregator, ""), Put: p.hub.putter(volumeAggregator),
		MetricsAddress: "127.0.0.1:0", Unit: p.aggregators[(i-1)%len(p.aggregators)].place,
	}
}

// SetLink implements live.ControlPlane: the connection to the API server of a node's reporter, or of the aggregators.
func (p *controlPlane) SetLink(ctx context.Context, l history.Link, f netfault.Fault) error {
	switch {
	case l.From == history.RoleReporter && l.To == history.RoleAPIServer:
		p.mu.Lock()
		n := p.names[l.Node]
		if n != nil {
			n.faulty = f.Breaks()
		}
		p.mu.Unlock()
		if n == nil {
			return fmt.Errorf("there is no node %s", l.Node)
		}
		return n.agent.SetLink(ctx, f)
	case l.From == history.RoleAggregator && l.To == history.RoleLoadBalancer:
		return p.hub.agent.SetLink(ctx, f)
	}
	return fmt.Errorf("link from %s to %s: %w", l.From, l.To, errNone)
}

// Reset implements pool.ControlPlane.
func (p *controlPlane) Reset(ctx context.Context, s *scenario.Scenario) error {
	ctx, cancel := context.WithTimeout(ctx, resetTimeout)
	defer cancel()
	if err := errors.Join(p.hub.agent.SetLink(ctx, netfault.Fault{}), p.kms.Clear(ctx), p.install(ctx, s.Operator)); err != nil {
		return err
	}
	if err := p.resetNodes(ctx, s); err != nil {
		return err
	}
	if err := p.profile.Become(ctx, s.Topology.Profile, &p.nodes); err != nil {
		return err
	}
	return live.Reset(ctx, p, s.Operator)
}

// resetNodes makes the nodes those that a scenario begins with.
func (p *controlPlane) resetNodes(ctx context.Context, s *scenario.Scenario) error {
	wanted := make([]string, s.Topology.ControlPlanes)
	for i := range wanted {
		wanted[i] = fmt.Sprintf("cp-%d", i+1)
	}
	if err := p.allow(ctx, wanted); err != nil {
		return err
	}
	out, in := difference(wanted, p.nodes.Names(), p.isGone)
	for _, name := range out {
		if err := p.RemoveNode(ctx, p.nodes.Get(name)); err != nil {
			return err
		}
	}
	for _, n := range p.nodes.List() {
		if err := p.resetNode(ctx, n, live.KeyIDs(s)); err != nil {
			return fmt.Errorf("node %s: %w", n.Name, err)
		}
	}
	return p.makeNodes(ctx, in, live.KeyIDs(s))
}

func (p *controlPlane) isGone(name string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := p.names[name]
	return n == nil || n.gone
}

// difference is the nodes to remove and to add, so that those that are there become those that are wanted. One that is gone for the
// aggregator is another node, whatever its name.
func difference(wanted, there []string, gone func(string) bool) (out, in []string) {
	stays := func(name string) bool {
		return slices.Contains(wanted, name) && slices.Contains(there, name) && !gone(name)
	}
	for _, name := range there {
		if !stays(name) {
			out = append(out, name)
		}
	}
	for _, name := range wanted {
		if !stays(name) {
			in = append(in, name)
		}
	}
	return out, in
}
