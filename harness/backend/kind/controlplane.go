package kind

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	kindcluster "sigs.k8s.io/kind/pkg/cluster"

	"github.com/kmsharness/kmsharness/harness/backend/live"
	"github.com/kmsharness/kmsharness/harness/backend/pool"
	"github.com/kmsharness/kmsharness/harness/cluster"
	"github.com/kmsharness/kmsharness/harness/cluster/objects"
	"github.com/kmsharness/kmsharness/harness/controlplane"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

// Plane names the control plane that a scenario needs.
func Plane(s *scenario.Scenario) string { return shapeOf(s).String() }

// shapeOf leaves out what a reset changes: plugins, and how programs reach the API, unless the cluster is made for it.
func shapeOf(s *scenario.Scenario) pool.Shape {
	is := pool.ShapeOf(s)
	is.KeyIDs = ""
	is.FailsOver = false
	if !is.Streams() {
		is.Connectivity = ""
	}
	return is
}

// controlPlane is one kind cluster that scenarios use one after another. What it consists of is embedded: it implements most interfaces of a cluster.ControlPlane.
type controlPlane struct {
	*cluster.Host // of the remote KMS
	*cluster.Tainted
	controlplane.Authority // of the cluster
	machines
	links
	*etcdMembers
	units *units

	layout   layout
	clusters *kindClusters
	archives archives
	shape    pool.Shape
	// accountKey signs the tokens of service accounts, in PEM.
	accountKey []byte
	// connectivity is how the reporters of kube-apiserver reach the API in the current scenario.
	connectivity string
	podShape            // of the current scenario
	kindSaid     string // output of the command with which kind failed

	kms         *cluster.RemoteKMS
	nodes       cluster.Nodes
	fleets      []*aggregatedServers // aggregated API servers
	profile     cluster.Profile      // of the plugins
	aggregators *deployment
	operator    *deployment // of an operator under test that is an image; nil: there is none
	installed   map[string]bool
	starting    starting   // execs of recorders
	kept        *addresses // of nodes without power; changed by one action at a time
}

func (p *controlPlane) Parts() *cluster.ControlPlane {
	all := []cluster.APIServer{{Nodes: &p.nodes, Encrypted: cluster.EncryptedSecrets(), Profile: &p.profile, Plugins: p, Processes: kubePods{p}, Places: p.places(), Roller: kubePods{p}}}
	for _, f := range p.fleets {
		all = append(all, cluster.APIServer{Name: f.Stub.APIServer, Nodes: &f.nodes, Encrypted: f.Encrypted(), Profile: &f.profile, Plugins: f, Processes: f, Places: places{p, f.aggregators, f.Stub.APIServer}, Roller: f})
	}
	return &cluster.ControlPlane{Traits: p.Traits(), APIServers: all, Topology: membership{p}, Network: p, Storage: p, Credentials: p, Recording: p, KMS: p.kms,
		ClientServer: p.ClientServer(), MarkDirty: p.MarkDirty, Installed: p.installed, CRDs: p.shape.CRDs}
}

// newControlPlane is a plane of which nothing has been made yet.
func newControlPlane(b bootSpec) *controlPlane {
	host := cluster.NewHost(b.programs, b.runDir)
	// A reset brings the nodes back and gives the API servers their configuration again, and etcd can only have been paused. Nodes and pods that did not
	// start again are not worth another try, and the KMS of a plugin under test is not known.
	tainted := cluster.TaintedBy(cluster.TaintedProgram, cluster.TaintedPower, cluster.TaintedData, cluster.TaintedKMS)
	p := &controlPlane{Host: host, Tainted: tainted, units: newUnits(host), layout: layout{b.dir}, archives: b.archives,
		shape: b.shape, installed: map[string]bool{}}
	p.clusters = &kindClusters{name: b.name, nodeImage: b.nodeImage, layout: p.layout,
		provider: kindcluster.NewProvider(kindcluster.ProviderWithDocker(), kindcluster.ProviderWithLogger(logger{progress: b.progress}))}
	p.aggregators = newDeployment(aggregatorsOf(""), history.RoleAggregator, replicas, p.layout.deployed(history.RoleAggregator).dir, p.units)
	p.aggregators.streams = b.shape.Streams()
	if b.archives.images.operatorUnderTest != "" {
		p.operator = newDeployment(operatorUnderTest, history.RoleOperator, 1, p.layout.deployed(history.RoleOperator).dir, p.units)
	}
	p.etcdMembers = &etcdMembers{nodes: &p.nodes, machines: &p.machines, record: host.Record}
	p.links.layout, p.links.nodes, p.links.machines, p.links.lb = p.layout, &p.nodes, &p.machines, newLoadBalancer(b.shape.Advertises)
	p.links.deployment = p.aggregators
	p.links.broken = map[history.Link][]*breakage{}
	return p
}

func (p *controlPlane) Traits() cluster.Traits {
	return cluster.Traits{Backend: Name, Timing: cluster.Timing(), Tolerance: Tolerance, Takeover: cluster.Takeover, MaxNodes: maxNodes,
		RealNodes: true, Outlives: true, EncryptionPoll: encryptionPoll, Dir: p.layout.dir, Streaming: p.shape.Streams()}
}

// places are those of kube-apiserver.
func (p *controlPlane) places() places { return places{p, p.aggregators, ""} }

// ClientServer is the URL of the load balancer for clients of this machine.
func (p *controlPlane) ClientServer() string { return "https://" + p.front.Addr() }

func (p *controlPlane) LoadBalancer() cluster.Unit { return p.lb }

func (p *controlPlane) Logs() []cluster.LogDir { return p.logsOf(p.nodes.Names()) }

// logsOf are the folders with logs of programs under test, also of nodes that are not known yet.
func (p *controlPlane) logsOf(nodes []string) []cluster.LogDir {
	all := p.layout.sharedLogs()
	for _, name := range nodes {
		all = append(all, p.layout.node(name).pod("").logs(name+"-")...)
		for _, f := range p.fleets {
			all = append(all, p.layout.node(name).pod(f.Stub.APIServer).logs(f.Stub.APIServer+"-"+name+"-")...)
		}
	}
	return all
}

func (p *controlPlane) Vacate(ctx context.Context) string {
	if err := objects.Purge(ctx, p.Parts()); err != nil {
		return err.Error()
	}
	return p.Dirty()
}

// Close implements pool.Plane: it ends the cluster and everything beside it. It is safe for a plane that was not booted to its end.
func (p *controlPlane) Close(ctx context.Context) error {
	var errs []error
	p.units.close()
	nodes := p.nodes.List()
	for _, f := range p.fleets {
		nodes = append(nodes, f.nodes.List()...)
	}
	for _, n := range nodes {
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

// Reset implements pool.Plane; what it proves is objects.Reset's.
func (p *controlPlane) Reset(ctx context.Context, s *scenario.Scenario) error {
	plan, err := pool.PlanRepair(cluster.NodeNames(p.shape.Nodes), p.nodes.Names(), p.leaves)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, resetTimeout+time.Duration(len(plan.Out)+len(plan.In))*joinTimeout)
	defer cancel()
	keyIDs := live.KeyIDs(s)
	p.operated, p.connectivity = s.Topology.ByOperator(), s.Topology.Connectivity
	restore := []func(context.Context) error{func(ctx context.Context) error { return p.restore(ctx, plan, keyIDs) }}
	for _, f := range p.fleets {
		restore = append(restore, func(ctx context.Context) error { return restorePods(ctx, f.nodes.List(), p.podShape, f, keyIDs) })
	}
	return objects.Reset(ctx, p.Parts(), s, restore...)
}

// restore ends faults, and gives the cluster the nodes and pods of a scenario.
func (p *controlPlane) restore(ctx context.Context, plan pool.Repair, keyIDs []string) error {
	if err := errors.Join(p.links.restore(ctx), p.lb.Start(ctx), p.kms.Clear(ctx)); err != nil {
		return err
	}
	if err := makeNamespace(ctx, p); err != nil {
		return err
	}
	stay := slices.DeleteFunc(p.nodes.List(), func(n *cluster.Node) bool { return slices.Contains(plan.Out, n.Name) })
	resume := func(ctx context.Context, n *cluster.Node) error { // a scenario may have left etcd paused
		_, err := p.container(n.Name).exec(ctx, "pkill", "-CONT", "-x", "etcd")
		return err
	}
	if err := cluster.EachNode(ctx, stay, resume); err != nil {
		return err
	}
	if err := restorePods(ctx, stay, p.podShape, kubePods{p}, keyIDs); err != nil {
		return err
	}
	nodes := membership{p}
	if err := nodes.takeOut(ctx, plan.Out); err != nil {
		return err
	}
	for _, name := range plan.In { // one after another: etcd takes one new member at a time
		if _, err := nodes.AddNode(ctx, name, cluster.Plugins(keyIDs...), func(context.Context) error { return nil }); err != nil {
			return fmt.Errorf("bring %s back: %w", name, err)
		}
	}
	for _, n := range p.nodes.List() {
		p.connect(n)
	}
	through, err := p.donor("")
	if err != nil {
		return err
	}
	return p.assign(ctx, through.URL)
}

// create applies objects through an API server.
func (p *controlPlane) create(ctx context.Context, server string, objects ...runtime.Object) error {
	config, err := p.AdminConfig(server)
	if err != nil {
		return err
	}
	var all []*unstructured.Unstructured
	for _, o := range objects {
		u, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
		if err != nil {
			return err
		}
		delete(u, "status")
		all = append(all, &unstructured.Unstructured{Object: u})
	}
	return controlplane.Install(ctx, []*rest.Config{config}, all...)
}

// Collect implements cluster.Recording: the static pods and the kubeadm configuration of every node, and kind's own export.
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
	if text, err = cluster.WithoutSecrets(text); err != nil {
		return fmt.Errorf("kubeadm configuration: %w", err)
	}
	return os.WriteFile(filepath.Join(dir, "kubeadm.yaml"), text, 0o644)
}
