package kind

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/kind/pkg/cluster"

	"github.com/kmsharness/kmsharness/harness/backend/live"
	"github.com/kmsharness/kmsharness/harness/controlplane"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/netfault"
	holdjournal "github.com/kmsharness/kmsharness/harness/record/hold"
	"github.com/kmsharness/kmsharness/harness/record/tail"
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

// ReadEtcd implements live.Plane.
func (p *plane) ReadEtcd(ctx context.Context, key string) (value []byte, err error) {
	err = p.throughEtcd(func(transport http.RoundTripper, url string) (err error) {
		value, err = live.ReadEtcdGateway(ctx, transport, url, key)
		return err
	})
	return value, err
}

// RangeEtcd implements live.Plane.
func (p *plane) RangeEtcd(ctx context.Context, r live.Range) (found []live.KeyValue, more bool, err error) {
	err = p.throughEtcd(func(transport http.RoundTripper, url string) (err error) {
		found, more, err = live.RangeEtcdGateway(ctx, transport, url, r)
		return err
	})
	return found, more, err
}

// throughEtcd asks the member of any node.
func (p *plane) throughEtcd(ask func(transport http.RoundTripper, url string) error) error {
	transport := &http.Transport{TLSClientConfig: p.etcdTLS, DisableKeepAlives: true}
	var errs []error
	for _, n := range p.nodes.List() {
		err := ask(transport, "https://"+p.address(n.Name)+":"+portEtcd)
		if err == nil {
			return nil
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// loadEtcdTLS reads the certificates that etcd's clients on a node use.
func loadEtcdTLS(ctx context.Context, container string) (*tls.Config, error) {
	read := func(file string) ([]byte, error) {
		text, err := inside(ctx, container, nil, "cat", "/etc/kubernetes/pki/"+file)
		return []byte(text), err
	}
	ca, err1 := read("etcd/ca.crt")
	cert, err2 := read("etcd/healthcheck-client.crt")
	key, err3 := read("etcd/healthcheck-client.key")
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, fmt.Errorf("certificates of etcd: %w", err)
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("certificates of etcd: %w", err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	return &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}, nil
}

// follow passes what a unit's journal tells on to the listener.
func (p *plane) follow(dir, unit string, identity history.Process) error {
	return p.followWhoever(dir, unit, func() (history.Process, bool) { return identity, true })
}

// followWhoever is follow for a unit in which one program comes after another. What is about none of them is not passed on.
func (p *plane) followWhoever(dir, unit string, who func() (history.Process, bool)) error {
	return p.journals.Add(filepath.Join(dir, holdJournal(unit)), tail.FromStart, func(line []byte) error {
		change, err := holdjournal.Decode(line)
		if err != nil {
			return err
		}
		identity, any := who()
		if !any {
			return nil
		}
		switch told := change.Of(identity).(type) {
		case *history.Stall:
			p.TellStall(*told)
		case *history.Process:
			p.ledger.note(unitOn{dir, unit}, *told)
			p.Tell(change.At, *told)
		}
		return nil
	})
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

// tailEvery is how often the journals of hold are read.
const tailEvery = 25 * time.Millisecond

// startTailing reads the journals until Close.
func (p *plane) startTailing() {
	ctx, cancel := context.WithCancel(context.Background())
	p.stop = cancel
	p.tailing.Go(func() {
		ticker := time.NewTicker(tailEvery)
		defer ticker.Stop()
		p.journals.Run(ctx, ticker.C)
	})
}
