package kind

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/kind/pkg/apis/config/v1alpha4"
	kindcluster "sigs.k8s.io/kind/pkg/cluster"
	"sigs.k8s.io/kind/pkg/exec"
	"sigs.k8s.io/kind/pkg/log"

	"github.com/kmsharness/kmsharness/harness/backend/pool"
	"github.com/kmsharness/kmsharness/harness/cluster"
	"github.com/kmsharness/kmsharness/harness/cluster/recorder"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/netfault"
	"github.com/kmsharness/kmsharness/internal/host"
)

// bootSpec is what a boot needs to know.
type bootSpec struct {
	name, dir, nodeImage, runDir string
	shape                        pool.Shape
	programs                     *cluster.Programs
	archives                     archives
	progress                     func(string)
}

// booting is a cluster while it is made.
type booting struct {
	bootSpec
	p     *controlPlane
	names []string // of the nodes
}

// boot creates a cluster and wires it. On error it gives what was made, which the caller closes.
func boot(ctx context.Context, spec bootSpec) (*controlPlane, error) {
	spec.progress = timed(time.Now(), spec.progress)
	b := &booting{bootSpec: spec, p: newControlPlane(spec), names: cluster.NodeNames(spec.shape.Nodes)}
	ctx, cancel := context.WithTimeout(ctx, bootTimeout)
	defer cancel()
	for _, step := range []func(context.Context) error{b.prepareFolders, b.prepare, b.create, b.wire, b.wireNodes} {
		if err := step(ctx); err != nil {
			return b.p, fmt.Errorf("boot a kind cluster with %d control-plane nodes: %w", b.shape.Nodes, err)
		}
	}
	b.progress("the cluster is ready")
	return b.p, nil
}

// timed puts the time since the beginning before every line: a boot takes minutes.
func timed(begin time.Time, progress func(string)) func(string) {
	return func(line string) { progress(fmt.Sprintf("%4.0fs  %s", time.Since(begin).Seconds(), line)) }
}

// prepareFolders makes the folders that the nodes mount.
func (b *booting) prepareFolders(context.Context) error {
	l := b.p.layout
	err := errors.Join(os.MkdirAll(l.images(), 0o755), os.MkdirAll(l.logs(), 0o755), os.MkdirAll(l.pluginsUnderTest().dir, 0o700))
	for _, role := range deployedRoles() {
		err = errors.Join(err, os.MkdirAll(l.deployed(role).dir, 0o700), os.MkdirAll(l.deployedConfig(role).dir, 0o755))
	}
	if err != nil {
		return err
	}
	for _, name := range b.names {
		if err := l.node(name).prepare(cluster.Plugins(firstKeyID)); err != nil {
			return err
		}
	}
	return nil
}

// prepare fills the folders with what the pods find there, and starts the remote KMS.
func (b *booting) prepare(ctx context.Context) (err error) {
	if err := b.p.makeFleets(b.shape.APIServers()); err != nil {
		return err
	}
	shared := b.p.layout.shared()
	for _, name := range b.shape.APIServers() { // of the files of its aggregators
		if err := os.MkdirAll(b.p.layout.deployedConfig(history.RoleAggregator).file(name), 0o755); err != nil {
			return err
		}
	}
	for _, file := range b.archives.files { // a link: the run directory has both folders
		if err := os.Link(file, filepath.Join(b.p.layout.images(), filepath.Base(file))); err != nil {
			return err
		}
	}
	for _, name := range programsOf(b.shape) {
		program, err := b.programs.Find(ctx, name)
		if err != nil {
			return err
		}
		text, err := os.ReadFile(program)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(shared, name), text, 0o755); err != nil {
			return err
		}
	}
	b.p.kms, err = cluster.StartRemoteKMS(ctx, b.p.Host, shared, b.p.layout.logs())
	return err
}

// prepare makes the folders of a node, and writes what its pods find there at their start.
func (n nodeLayout) prepare(told cluster.Encryption) error {
	if err := errors.Join(n.pod("").make(), n.makeProxyFolder(), os.MkdirAll(n.sockets(), socketFolder)); err != nil {
		return err
	}
	text, err := encryptionText(told, nil)
	if err != nil {
		return err
	}
	if told.File != nil {
		text = told.File // in the node the sockets are where it says
	}
	return errors.Join(os.WriteFile(n.file(encryptionFile), text, 0o644), os.WriteFile(n.file(auditPolicy), cluster.AuditPolicy(), 0o644))
}

// create lets kind make the cluster. It cannot be interrupted; what it made is deleted by Close.
func (b *booting) create(ctx context.Context) error {
	err := createCluster(b.p.clusters.provider, b.name, b.nodeImage, filepath.Join(b.dir, "kubeconfig"), config(b.name, b.p.layout, b.names))
	if ended := exec.RunErrorForError(err); ended != nil {
		b.p.kindSaid = string(ended.Output)
	}
	if err != nil {
		return err
	}
	return ctx.Err()
}

// createCluster lets kind make a cluster.
func createCluster(provider *kindcluster.Provider, name, nodeImage, kubeconfig string, c *v1alpha4.Cluster, more ...kindcluster.CreateOption) error {
	return provider.Create(name, append(more,
		kindcluster.CreateWithV1Alpha4Config(c), kindcluster.CreateWithNodeImage(nodeImage),
		kindcluster.CreateWithKubeconfigPath(kubeconfig), kindcluster.CreateWithRetain(true),
		kindcluster.CreateWithDisplayUsage(false), kindcluster.CreateWithDisplaySalutation(false))...)
}

// noFsync lets etcd leave its writes in the page cache, which outlives a container that is killed. A disk that is slow to sync would make all
// of a cluster slow.
const noFsync = `kind: ClusterConfiguration
apiVersion: kubeadm.k8s.io/v1beta4
etcd: {local: {extraArgs: [{name: unsafe-no-fsync, value: "true"}]}}
`

// longLeases lets controller manager and scheduler of a single node keep their leases while its API server is replaced. Those that lose a lease end, and
// after a few revisions a kubelet starts them only every five minutes. OpenShift gives them more time on a single node, too.
const longLeases = `kind: ClusterConfiguration
apiVersion: kubeadm.k8s.io/v1beta4
controllerManager: ` + leases + `
scheduler: ` + leases + "\n"

const leases = `{extraArgs: [{name: leader-elect-lease-duration, value: 75s}, {name: leader-elect-renew-deadline, value: 60s}]}`

// joining lets kubeadm join a node to the cluster of an API server or a load balancer, and not to that of its own which kind gives it.
func joining(endpoint container) string {
	return fmt.Sprintf("kind: JoinConfiguration\napiVersion: kubeadm.k8s.io/v1beta4\ndiscovery: {bootstrapToken: {apiServerEndpoint: %q}}\n", endpoint+":"+portAPIServer)
}

// config is the kind cluster of a plane with control-plane nodes of these names. The nodes have the names that scenarios
// use, whatever kind calls their containers.
func config(cluster string, l layout, names []string, patches ...string) *v1alpha4.Cluster {
	c := &v1alpha4.Cluster{
		TypeMeta: v1alpha4.TypeMeta{Kind: "Cluster", APIVersion: "kind.x-k8s.io/v1alpha4"},
		Name:     cluster,

		KubeadmConfigPatches: append(patches, noFsync, kubeletAnswers),
	}
	if len(names) == 1 {
		c.KubeadmConfigPatches = append(c.KubeadmConfigPatches, longLeases)
	}
	for _, name := range names {
		var patches []string
		for _, kind := range []string{"InitConfiguration", "JoinConfiguration"} { // kubeadm registers the node under the name
			patches = append(patches, fmt.Sprintf("kind: %s\napiVersion: kubeadm.k8s.io/v1beta4\nnodeRegistration: {name: %s}\n", kind, name))
		}
		n := l.node(name)
		c.Nodes = append(c.Nodes, v1alpha4.Node{Role: v1alpha4.ControlPlaneRole, KubeadmConfigPatches: patches, ExtraMounts: []v1alpha4.Mount{
			{HostPath: n.state(), ContainerPath: inNodeState},
			{HostPath: n.sockets(), ContainerPath: inNodeSocket},
			{HostPath: l.shared(), ContainerPath: inNodeShared},
		}})
	}
	return c
}

// wire makes known how the cluster is reached.
func (b *booting) wire(ctx context.Context) error {
	for i, c := range controlPlanes(b.name, len(b.names)) {
		b.p.change(b.names[i], func(m *machine) { m.container = c })
	}
	first := b.p.container(b.names[0])
	accounts, err := first.read(ctx, pkiDir+"sa.key")
	if err != nil {
		return err
	}
	authority, err := first.authority(ctx, pkiDir+"ca")
	if err != nil {
		return err
	}
	authority.ServerName = "localhost" // in every certificate that kind makes
	b.p.Authority, b.p.accountKey = authority, append(accounts, '\n')
	if err := b.p.loadTLS(ctx, first); err != nil {
		return err
	}
	return b.findLoadBalancer(ctx)
}

// findLoadBalancer finds kind's, or takes the single node for it.
func (b *booting) findLoadBalancer(ctx context.Context) (err error) {
	lb := b.p.lb
	lb.container, lb.record, lb.phase = b.p.container(b.names[0]), b.p.Record, cluster.Running
	if len(b.names) > 1 {
		lb.container = container(b.name + "-external-load-balancer")
		if lb.ip, err = lb.container.address(ctx); err != nil {
			return err
		}
	}
	published, err := lb.container.published(ctx)
	if err != nil {
		return err
	}
	if lb.client, err = cluster.NewAdmin(b.p.Authority, "https://"+published); err != nil {
		return err
	}
	b.p.front, err = netfault.NewLink(host.Host{}, "clients to the load balancer", published)
	return err
}

// wireNodes deploys the aggregator while the API servers that kubeadm started are there: those that take their place are away
// long enough for controller manager and scheduler to lose their leases.
func (b *booting) wireNodes(ctx context.Context) error {
	b.progress("images go to the nodes, and the aggregator is deployed")
	nodes := make([]*cluster.Node, len(b.names))
	all, making := errgroup.WithContext(ctx)
	for i, name := range b.names {
		all.Go(func() (err error) {
			if nodes[i], err = b.p.readyNode(making, name, []string{firstKeyID}); err != nil {
				return fmt.Errorf("node %s: %w", name, err)
			}
			return nil
		})
	}
	if err := all.Wait(); err != nil {
		return err
	}
	server := nodes[0].URL
	client, err := b.p.objectsThrough(server)
	if err != nil {
		return err
	}
	if err := deploy(ctx, client, b.p.deployments(), b.p.archives.images); err != nil {
		return err
	}
	if err := b.p.assign(ctx, server); err != nil {
		return err
	}
	if err := b.deployFleets(ctx, nodes, server); err != nil {
		return err
	}
	b.progress("plugins and reporters go into the API servers' pods")
	// All before any: a kubelet may listen to the API server of another node.
	known := func(ctx context.Context, n *cluster.Node) error {
		return kubeletKnows(ctx, b.p.container(n.Name), n.Name)
	}
	if err := cluster.EachNode(ctx, nodes, known); err != nil {
		return err
	}
	inject := func(ctx context.Context, n *cluster.Node) error {
		return inject(ctx, b.p.container(n.Name), serverOf(n), b.p.spec(n))
	}
	if err := cluster.EachNode(ctx, nodes, inject); err != nil {
		return err
	}
	for _, n := range nodes {
		b.p.nodes.Add(n)
	}
	if err := b.p.startFronts(ctx, nodes); err != nil {
		return err
	}
	b.p.units.startTailing()
	for _, f := range b.p.fleets {
		b.progress("starting " + f.Stub.APIServer)
		if err := f.start(ctx); err != nil {
			return err
		}
	}
	return nil
}

// deployFleets makes the pods of the aggregated API servers; what is in them waits.
func (b *booting) deployFleets(ctx context.Context, nodes []*cluster.Node, server string) error {
	all, ctx := errgroup.WithContext(ctx)
	for _, f := range b.p.fleets {
		for _, n := range nodes {
			if err := f.makeNode(ctx, n, []string{firstKeyID}); err != nil {
				return fmt.Errorf("%s of %s: %w", f.Stub.APIServer, n.Name, err)
			}
		}
		all.Go(func() error { return f.deploy(ctx, server) })
	}
	return all.Wait()
}

// logger passes what kind says at its lowest verbosity to a progress function.
type logger struct {
	progress func(string)
	verbose  bool // it is for what is not passed on
}

var _ interface {
	log.Logger
	log.InfoLogger
} = logger{}

func (l logger) Warn(message string)               { l.Info(message) }
func (l logger) Warnf(format string, args ...any)  { l.Infof(format, args...) }
func (l logger) Error(message string)              { l.Info(message) }
func (l logger) Errorf(format string, args ...any) { l.Infof(format, args...) }
func (l logger) Infof(format string, args ...any)  { l.Info(fmt.Sprintf(format, args...)) }
func (l logger) Enabled() bool                     { return !l.verbose }
func (l logger) V(level log.Level) log.InfoLogger  { return logger{l.progress, level > 0} }

// Info leaves out the beginnings of steps: kind names each again when it is done.
func (l logger) Info(text string) {
	begins := strings.Contains(text, "•")
	text = strings.Trim(text, " \n\r\t✓")
	if text != "" && !begins && !l.verbose {
		l.progress("kind: " + text)
	}
}

// explainTimeout bounds what is kept of a cluster that did not come up, apart from kind's export, which cannot be interrupted.
const explainTimeout = time.Minute

// explain keeps what tells why a cluster did not come up, before it is deleted: kind's export, the manifests and the logs of programs under test. It
// returns the error in one line. Every part is kept as far as it can be had; what cannot is beside the error.
func explain(ctx context.Context, p *controlPlane, failed error, dir string) string {
	ctx, cancel := context.WithTimeout(ctx, explainTimeout)
	defer cancel()
	missing := errors.Join(os.MkdirAll(dir, 0o755), recorder.CopyLogs(p.logsOf(cluster.NodeNames(p.shape.Nodes)), dir), p.clusters.export(ctx, filepath.Join(dir, "kind"), func(string) {}))
	for _, c := range controlPlanes(p.clusters.name, p.shape.Nodes) {
		missing = errors.Join(missing, c.copyOut(ctx, filepath.Dir(manifest), filepath.Join(dir, "kind", string(c), "manifests")))
	}
	return pool.Explain(dir, failed, p.kindSaid, missing)
}
