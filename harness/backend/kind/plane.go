package kind

import (
	"context"
	"crypto/tls"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/kind/pkg/cluster"

	"github.com/kmsharness/kmsharness/harness/backend/live"
	"github.com/kmsharness/kmsharness/harness/controlplane"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/netfault"
	"github.com/kmsharness/kmsharness/harness/record/tail"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

// fromClient is who uses the load balancer from outside the cluster.
const fromClient = live.FromClient

// plane is one kind cluster that scenarios use one after another.
type plane struct {
	*live.Host // of the remote KMS
	layout     layout
	cluster    string
	provider   *cluster.Provider
	archives   archives
	nodeImage  string
	shape      shape
	began      time.Time
	kindSaid   string // output of the command with which kind failed

	authority   controlplane.Authority
	etcdTLS     *tls.Config
	kms         *live.RemoteKMS
	lb          *loadBalancer
	front       *netfault.Link // of clients on this machine
	nodes       live.Nodes
	plugins     places
	fleets      []*fleet     // further API servers
	profile     live.Profile // of the plugins
	aggregators []*seat
	installed   map[string]bool
	links       links

	// journals of hold tell what happens to the units.
	journals *tail.Set
	stop     context.CancelFunc
	tailing  sync.WaitGroup

	starting   starting // execs of recorders
	mu         sync.Mutex
	containers map[string]string // by node
	members    map[string]string // addresses of nodes
	leaving    map[string]bool   // nodes that were isolated and are still there
	later      []string          // clusters of one node that joined this one
	dirty      string            // why it cannot be used again; empty: it can
	absent     absences

	ledger ledger
	kept   *addresses // of nodes without power; changed by one action at a time
}

var _ live.Plane = (*plane)(nil)

// Traits implements live.Plane.
func (p *plane) Traits() live.Traits {
	return live.Traits{Backend: Name, Timing: timing(), Tolerance: Tolerance, Takeover: live.Takeover, MaxNodes: maxNodes,
		RealNodes: true, Outlives: true, EncryptionPoll: encryptionPoll, Dir: p.layout.dir}
}

// Nodes implements live.Plane.
func (p *plane) Nodes() *live.Nodes { return &p.nodes }

// Logs implements live.Plane.
func (p *plane) Logs() []live.LogDir {
	all := []live.LogDir{{Dir: p.layout.logs()}, {Dir: p.layout.shared()}}
	for _, n := range p.everyNode() {
		prefix := n.Name + "-"
		if n.APIServer != "" {
			prefix = n.APIServer + "-" + prefix
		}
		all = append(all, live.LogDir{Dir: p.layout.node(n.Name).pod(n.APIServer).dir, Prefix: prefix})
	}
	return all
}

// KMS implements live.Plane.
func (p *plane) KMS() *live.RemoteKMS { return p.kms }

// Spoil implements live.Plane. A reset brings the nodes back and gives the API servers their configuration again, and etcd can
// only have been paused. Nodes and pods that did not start again are not worth another try.
func (p *plane) Spoil(d live.Damage) {
	if d != live.DamagedProgram && d != live.DamagedPower && d != live.DamagedData {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dirty = string(d)
}

// Vacate implements pool.Plane.
func (p *plane) Vacate(ctx context.Context) string {
	if err := live.Purge(ctx, p); err != nil {
		return err.Error()
	}
	for _, f := range p.fleets {
		if err := live.PurgeFurther(ctx, f); err != nil {
			return err.Error()
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dirty
}

// container of a node, or "".
func (p *plane) container(node string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.containers[node]
}

// address of a node on the nodes' network.
func (p *plane) address(node string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.members[node]
}

// Kubeconfig implements live.Plane.
func (p *plane) Kubeconfig(user string, groups []string, server string) ([]byte, error) {
	return p.authority.Kubeconfig(user, groups, server)
}

// Certificate implements live.Plane.
func (p *plane) Certificate(user string, groups []string, life time.Duration) (text []byte, expires time.Time, err error) {
	return p.authority.Certificate(user, groups, life)
}

// RESTConfig implements live.Plane.
func (p *plane) RESTConfig(user string, groups []string, server string) (*rest.Config, error) {
	return p.authority.RESTConfig(user, groups, server)
}

// ClientServer implements live.Plane.
func (p *plane) ClientServer() string { return "https://" + p.front.Addr() }

// LoadBalancer implements live.Plane.
func (p *plane) LoadBalancer() live.Unit { return p.lb }

// Lives implements live.Plane: the remote KMS, and what the pods run.
func (p *plane) Lives() []history.Process {
	all := p.Host.Lives()
	for _, n := range p.everyNode() {
		targets := []live.Target{{Unit: n.Server, Identity: history.Process{Role: history.RoleAPIServer, APIServer: n.APIServer, Node: n.Name}}}
		for _, g := range n.Plugins() {
			targets = append(targets, g.Target)
		}
		for _, t := range targets {
			if s := t.Status(); s.Lives() {
				t.Identity.PID = s.PID
				all = append(all, t.Identity)
			}
		}
	}
	return all
}

// everyNode are the nodes, and those beside them of the further API servers.
func (p *plane) everyNode() []*live.Node {
	all := p.nodes.List()
	for _, f := range p.fleets {
		all = append(all, f.nodes.List()...)
	}
	return all
}

// Close implements pool.Plane: it ends the cluster and everything beside it. It is safe for a plane that was not booted to its end.
func (p *plane) Close(ctx context.Context) error {
	var errs []error
	if p.stop != nil {
		p.stop()
		p.tailing.Wait()
		_ = p.journals.Close() // what they hold belongs to no run any more
	}
	for _, n := range p.everyNode() {
		n.Close()
	}
	if p.front != nil {
		errs = append(errs, p.front.Close())
	}
	for _, name := range append([]string{p.cluster}, p.later...) {
		errs = append(errs, deleteCluster(ctx, p.provider, name, filepath.Join(p.layout.dir, "kubeconfig")))
	}
	if p.kms != nil {
		p.kms.Close()
	}
	p.KillAll()
	errs = append(errs, p.Supervisor.Close(ctx))
	return errors.Join(append(errs, os.RemoveAll(p.layout.dir))...)
}

// shape is what planes that can stand for each other have in common.
type shape struct {
	nodes   int    // that a scenario begins with
	further string // API servers beside kube-apiserver, joined
	crds    string // variant of the operators' CRDs; empty: the usual one
}

func shapeOf(s *scenario.Scenario) shape {
	is := shape{nodes: s.Topology.ControlPlanes, further: strings.Join(s.Topology.Further(), ","), crds: s.Topology.CRDs}
	if is.nodes == 0 {
		is.nodes = 3
	}
	return is
}

// furtherNames are those of shape.further.
func (s shape) furtherNames() []string {
	return strings.FieldsFunc(s.further, func(r rune) bool { return r == ',' })
}
