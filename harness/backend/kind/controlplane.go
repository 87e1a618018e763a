package kind

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/kind/pkg/cluster"

	"github.com/kmsharness/kmsharness/harness/backend/live"
	"github.com/kmsharness/kmsharness/harness/backend/pool"
	"github.com/kmsharness/kmsharness/harness/controlplane"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

// shape is what planes that can stand for each other have in common.
type shape struct {
	nodes   int    // that a scenario begins with
	further string // API servers beside kube-apiserver, joined
	crds    string // variant of the operators' CRDs; empty: the usual one
	// advertises reports whether the API servers send Alt-Svc.
	advertises bool
	// streams reports whether the reporters stream to the aggregator: then they have no rights, which the cluster's roles decide.
	streams bool
}

// Plane names the control plane that a scenario needs.
func Plane(s *scenario.Scenario) string {
	is, advertises, streams := shapeOf(s), "", ""
	if is.advertises {
		advertises = history.ConnectAltSvc
	}
	if is.streams {
		streams = history.ConnectStream
	}
	return pool.Describe(is.nodes, is.crds, advertises, streams, is.further)
}

func shapeOf(s *scenario.Scenario) shape {
	is := shape{nodes: s.Topology.ControlPlanes, further: strings.Join(s.Topology.Aggregated(), ","), crds: s.Topology.CRDs,
		advertises: s.Topology.Advertises(), streams: s.Topology.Connectivity == history.ConnectStream}
	if is.nodes == 0 {
		is.nodes = 3
	}
	return is
}

// aggregatedNames are those of shape.further.
func (s shape) aggregatedNames() []string {
	return strings.FieldsFunc(s.further, func(r rune) bool { return r == ',' })
}

// controlPlane is one kind cluster that scenarios use one after another. What it consists of is embedded: it implements most interfaces of a live.ControlPlane.
type controlPlane struct {
	*live.Host             // of the remote KMS
	controlplane.Authority // of the cluster
	machines
	links
	*etcdMembers
	units *units

	layout   layout
	clusters *kindClusters
	archives archives
	shape    shape
	// accountKey signs the tokens of service accounts, in PEM.
	accountKey []byte
	// connectivity is how the reporters of kube-apiserver reach the API in the current scenario.
	connectivity string
	podShape            // of the current scenario
	kindSaid     string // output of the command with which kind failed

	kms         *live.RemoteKMS
	nodes       live.Nodes
	fleets      []*aggregatedServers // aggregated API servers
	profile     live.Profile         // of the plugins
	aggregators *deployment
	operator    *deployment // of an operator under test that is an image; nil: there is none
	installed   map[string]bool
	starting    starting   // execs of recorders
	kept        *addresses // of nodes without power; changed by one action at a time

	mu    sync.Mutex
	dirty string // why it cannot be used again; empty: it can
}

func (p *controlPlane) Parts() *live.ControlPlane {
	all := []live.APIServer{{Nodes: &p.nodes, Encrypted: live.EncryptedSecrets(), Plugins: p, Processes: kubePods{p}, Places: p.places(), Roller: kubePods{p}}}
	for _, f := range p.fleets {
		all = append(all, live.APIServer{Name: f.Stub.APIServer, Nodes: &f.nodes, Encrypted: f.Encrypted(), Plugins: f, Processes: f, Places: places{p, f.aggregators, f.Stub.APIServer}, Roller: f})
	}
	return &live.ControlPlane{Traits: p.Traits(), APIServers: all, Topology: membership{p}, Network: p, Storage: p, Credentials: p, Recording: p, KMS: p.kms,
		ClientServer: p.ClientServer(), MarkDirty: p.MarkDirty}
}

// newControlPlane is a plane of which nothing has been made yet.
func newControlPlane(b bootSpec) *controlPlane {
	host := live.NewHost(b.programs, b.runDir)
	p := &controlPlane{Host: host, units: newUnits(host), layout: layout{b.dir}, archives: b.archives,
		shape: b.shape, installed: map[string]bool{}}
	p.clusters = &kindClusters{name: b.name, nodeImage: b.nodeImage, layout: p.layout,
		provider: cluster.NewProvider(cluster.ProviderWithDocker(), cluster.ProviderWithLogger(logger{b.progress}))}
	p.aggregators = newDeployment(aggregatorsOf(""), history.RoleAggregator, replicas, p.layout.deployed(history.RoleAggregator).dir, p.units)
	p.aggregators.streams = b.shape.streams
	if b.archives.images.operatorUnderTest != "" {
		p.operator = newDeployment(operatorUnderTest, history.RoleOperator, 1, p.layout.deployed(history.RoleOperator).dir, p.units)
	}
	p.etcdMembers = &etcdMembers{nodes: &p.nodes, machines: &p.machines, record: host.Record}
	p.links.layout, p.links.nodes, p.links.machines, p.links.lb = p.layout, &p.nodes, &p.machines, &loadBalancer{fronts: b.shape.advertises}
	p.links.deployment = p.aggregators
	p.links.broken = map[history.Link][]*breakage{}
	return p
}

func (p *controlPlane) Traits() live.Traits {
	return live.Traits{Backend: Name, Timing: live.Timing(), Tolerance: Tolerance, Takeover: live.Takeover, MaxNodes: maxNodes,
		RealNodes: true, Outlives: true, EncryptionPoll: encryptionPoll, Dir: p.layout.dir, Streaming: p.shape.streams}
}

// places are those of kube-apiserver.
func (p *controlPlane) places() places { return places{p, p.aggregators, ""} }

// ClientServer is the URL of the load balancer for clients of this machine.
func (p *controlPlane) ClientServer() string { return "https://" + p.front.Addr() }

func (p *controlPlane) LoadBalancer() live.Unit { return p.lb }

func (p *controlPlane) Logs() []live.LogDir {
	all := p.layout.sharedLogs()
	for _, n := range p.everyNode() {
		prefix := n.Name + "-"
		if n.APIServer != "" {
			prefix = n.APIServer + "-" + prefix
		}
		all = append(all, podFiles{dir: serverOf(n).dir}.logs(prefix)...)
	}
	return all
}

// MarkDirty keeps other scenarios from the control plane where a reset cannot help. A reset brings the nodes back and gives the API servers their configuration again, and etcd can
// only have been paused. Nodes and pods that did not start again are not worth another try, and the KMS of a plugin under test is not known.
func (p *controlPlane) MarkDirty(d live.Taint) {
	if !slices.Contains([]live.Taint{live.TaintedProgram, live.TaintedPower, live.TaintedData, live.TaintedKMS}, d) {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dirty = string(d)
}

func (p *controlPlane) Vacate(ctx context.Context) string {
	if err := live.Purge(ctx, p.Parts()); err != nil {
		return err.Error()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dirty
}

// Running implements live.Recording: the remote KMS, and what the pods run.
func (p *controlPlane) Running() []history.Process {
	all := p.Host.Running()
	for _, n := range p.everyNode() {
		targets := []live.Target{{Unit: n.Server, Identity: history.Process{Role: history.RoleAPIServer, APIServer: n.APIServer, Node: n.Name}}}
		for _, g := range n.Plugins() {
			targets = append(targets, g.Target)
		}
		for _, t := range targets {
			if s := t.Status(); s.Running() {
				t.Identity.PID = s.PID
				all = append(all, t.Identity)
			}
		}
	}
	return all
}

// everyNode are the nodes, and those beside them of the aggregated API servers.
func (p *controlPlane) everyNode() []*live.Node {
	all := p.nodes.List()
	for _, f := range p.fleets {
		all = append(all, f.nodes.List()...)
	}
	return all
}

// Close implements pool.Plane: it ends the cluster and everything beside it. It is safe for a plane that was not booted to its end.
func (p *controlPlane) Close(ctx context.Context) error {
	var errs []error
	p.units.close()
	for _, n := range p.everyNode() {
		n.Close()
	}
	if p.front != nil {
		errs = append(errs, p.front.Close())
	}
	errs = append(errs, p.clusters.delete(ctx))
	if p.kms != nil {
		p.kms.Close()
	}
	p.KillAll()
	errs = append(errs, p.Supervisor.Close(ctx))
	return errors.Join(append(errs, os.RemoveAll(p.layout.dir))...)
}

// Reset implements pool.Plane; what it proves is live.Reset's.
func (p *controlPlane) Reset(ctx context.Context, s *scenario.Scenario) error {
	plan, err := pool.PlanRepair(live.NodeNames(p.shape.nodes), p.nodes.Names(), p.leaves)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, resetTimeout+time.Duration(len(plan.Out)+len(plan.In))*joinTimeout)
	defer cancel()
	if err := errors.Join(p.links.restore(ctx), p.lb.Start(ctx), p.kms.Clear(ctx)); err != nil {
		return err
	}
	keyIDs := live.KeyIDs(s)
	p.operated = s.Topology.ByOperator()
	if err := makeNamespace(ctx, p); err != nil {
		return err
	}
	stay := slices.DeleteFunc(p.nodes.List(), func(n *live.Node) bool { return slices.Contains(plan.Out, n.Name) })
	err = eachNode(ctx, stay, func(ctx context.Context, n *live.Node) error {
		// A scenario may have left etcd paused.
		if _, err := p.container(n.Name).exec(ctx, "pkill", "-CONT", "-x", "etcd"); err != nil {
			return err
		}
		if err := reshape(ctx, p.podShape, kubePods{p}, n, keyIDs); err != nil {
			return err
		}
		return serverOf(n).reset(ctx, n, keyIDs)
	})
	if err != nil {
		return err
	}
	nodes := membership{p}
	if err := nodes.takeOut(ctx, plan.Out); err != nil {
		return err
	}
	if err := nodes.bringIn(ctx, plan.In, keyIDs); err != nil {
		return err
	}
	p.connectivity = s.Topology.Connectivity
	for _, n := range p.nodes.List() {
		p.connect(n)
	}
	if err := p.profile.Become(ctx, s.Topology.Profile, &p.nodes); err != nil {
		return err
	}
	through, err := p.donor("")
	if err != nil {
		return err
	}
	if err := p.assign(ctx, through.URL); err != nil {
		return err
	}
	if err := p.install(ctx, s.Operator); err != nil {
		return err
	}
	parts := p.Parts()
	if err := live.Reset(ctx, parts, s.Operator); err != nil {
		return err
	}
	for i, f := range p.fleets {
		if err := f.reset(ctx, s, parts, parts.APIServers[i+1]); err != nil {
			return err
		}
	}
	return nil
}

// install installs what an operator needs, once.
func (p *controlPlane) install(ctx context.Context, operator string) error {
	objects, err := p.Traits().Missing(operator, p.shape.crds, p.installed)
	if err != nil || len(objects) == 0 {
		return err
	}
	var configs []*rest.Config
	for _, n := range p.nodes.List() {
		config, err := p.AdminConfig(n.URL)
		if err != nil {
			return err
		}
		configs = append(configs, config)
	}
	if err := controlplane.Install(ctx, configs, objects...); err != nil {
		return fmt.Errorf("manifests: %w", err)
	}
	p.installed[live.OperatorFlag(operator)] = true
	return nil
}

// eachNode does something to nodes at the same time.
func eachNode(ctx context.Context, nodes []*live.Node, do func(context.Context, *live.Node) error) error {
	names := make([]string, len(nodes))
	for i, n := range nodes {
		names[i] = n.Name
	}
	return eachOf(ctx, names, func(ctx context.Context, i int) error { return do(ctx, nodes[i]) })
}

// eachOf does something for the nodes of these names at the same time.
func eachOf(ctx context.Context, names []string, do func(ctx context.Context, i int) error) error {
	all, ctx := errgroup.WithContext(ctx)
	for i, name := range names {
		all.Go(func() error {
			if err := do(ctx, i); err != nil {
				return fmt.Errorf("node %s: %w", name, err)
			}
			return nil
		})
	}
	return all.Wait()
}

// Collect implements live.Recording: the static pods and the kubeadm configuration of every node, and kind's own export.
func (p *controlPlane) Collect(ctx context.Context, dir string, progress func(string)) error {
	var errs []error
	for _, n := range p.nodes.List() {
		if err := p.container(n.Name).collect(ctx, p.layout.dir, filepath.Join(dir, "nodes", n.Name)); err != nil {
			errs = append(errs, fmt.Errorf("node %s: %w", n.Name, err))
		}
	}
	errs = append(errs, p.clusters.export(ctx, filepath.Join(dir, "kind"), progress))
	return errors.Join(errs...)
}

// collect copies files of a node to a folder: the manifests, and the configuration that the node was
// set up with. This goes by way of a file of a private folder: it has the token that nodes join with.
func (c container) collect(ctx context.Context, private, dir string) (err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	copied := c.copyOut(ctx, filepath.Dir(manifest), filepath.Join(dir, "manifests"))
	whole := filepath.Join(private, "kubeadm-"+string(c)+".conf")
	defer func() { err = errors.Join(copied, err, os.RemoveAll(whole)) }()
	if err := c.copyOut(ctx, "/kind/kubeadm.conf", whole); err != nil {
		return err
	}
	text, err := os.ReadFile(whole)
	if err != nil {
		return err
	}
	if text, err = live.WithoutSecrets(text); err != nil {
		return fmt.Errorf("kubeadm configuration: %w", err)
	}
	return os.WriteFile(filepath.Join(dir, "kubeadm.yaml"), text, 0o644)
}
