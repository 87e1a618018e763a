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
	"sigs.k8s.io/kind/pkg/cluster"
	"sigs.k8s.io/kind/pkg/exec"
	"sigs.k8s.io/kind/pkg/log"

	"github.com/kmsharness/kmsharness/harness/backend/live"
	"github.com/kmsharness/kmsharness/harness/controlplane"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/record/tail"
)

// bootSpec is what a boot needs to know.
type bootSpec struct {
	name, dir, nodeImage, runDir string
	shape                        shape
	plain                        bool // nothing of this project in it
	programs                     *live.Programs
	archives                     archives
	progress                     func(string)
}

// boot creates a cluster and wires it. On error it gives what was made, which the caller closes.
func boot(ctx context.Context, b bootSpec) (p *plane, err error) {
	b.progress = timed(time.Now(), b.progress)
	p = newPlane(b)
	ctx, cancel := context.WithTimeout(ctx, bootTimeout)
	defer cancel()
	defer func() {
		if err != nil {
			err = fmt.Errorf("boot a kind cluster with %d control-plane nodes: %w", b.shape.nodes, err)
		}
	}()
	names := nodeNames(b.shape.nodes)
	prepare := p.prepare
	if b.plain {
		prepare = p.prepareFolders
	}
	if err := prepare(ctx, names); err != nil {
		return p, err
	}
	if err := p.create(ctx, b, names); err != nil {
		return p, err
	}
	if err := p.wire(ctx, b, names); err != nil {
		return p, err
	}
	b.progress("the cluster is ready")
	return p, nil
}

// timed puts the time since the beginning before every line: a boot takes minutes.
func timed(begin time.Time, progress func(string)) func(string) {
	return func(line string) { progress(fmt.Sprintf("%4.0fs  %s", time.Since(begin).Seconds(), line)) }
}

// newPlane is a plane of which nothing has been made yet.
func newPlane(b bootSpec) *plane {
	journals := tail.NewSet()
	return &plane{Host: live.NewHost(b.programs, b.runDir), layout: layout{b.dir}, began: time.Now(), cluster: b.name, archives: b.archives, nodeImage: b.nodeImage, shape: b.shape,
		provider:   cluster.NewProvider(cluster.ProviderWithDocker(), cluster.ProviderWithLogger(logger{b.progress})),
		containers: map[string]string{}, members: map[string]string{}, leaving: map[string]bool{}, links: links{broken: map[history.Link][]*breakage{}}, installed: map[string]bool{},
		journals: journals, plugins: places{journals: journals}}
}

// prepareFolders makes the folders that the nodes mount.
func (p *plane) prepareFolders(_ context.Context, names []string) error {
	if err := errors.Join(p.layout.makeShared(), os.MkdirAll(p.layout.logs(), 0o755)); err != nil {
		return err
	}
	for _, name := range names {
		if err := p.prepareNode(name, live.Plugins(firstKeyID)); err != nil {
			return err
		}
	}
	return nil
}

// prepare makes the folders with what the pods find there, and starts the remote KMS.
func (p *plane) prepare(ctx context.Context, names []string) (err error) {
	if err := p.prepareFolders(ctx, names); err != nil {
		return err
	}
	if err := p.makeFleets(p.shape.furtherNames()); err != nil {
		return err
	}
	for _, f := range p.fleets { // of the files of its aggregators
		if err := os.MkdirAll(filepath.Join(p.layout.shared(), f.Stand.APIServer), 0o755); err != nil {
			return err
		}
	}
	for _, file := range p.archives.files { // a link: the run directory has both folders
		if err := os.Link(file, filepath.Join(p.layout.images(), filepath.Base(file))); err != nil {
			return err
		}
	}
	for _, name := range []string{holdProgram, proxyProgram} {
		if err := p.share(ctx, name); err != nil {
			return err
		}
	}
	p.kms, err = live.StartRemoteKMS(ctx, p.Host, p.layout.shared(), p.layout.logs())
	return err
}

// share puts a program where every node and its pods find it.
func (p *plane) share(ctx context.Context, name string) error {
	program, err := p.Programs.Find(ctx, name)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(program)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(p.layout.shared(), name), text, 0o755)
}

// prepareNode writes what a node's pods find at their start.
func (p *plane) prepareNode(name string, told live.Encryption) error {
	n := p.layout.node(name)
	if err := n.make(); err != nil {
		return err
	}
	text, err := encryptionText(told, nil)
	if err != nil {
		return err
	}
	if told.File != nil {
		text = told.File // in the node the sockets are where it says
	}
	if err := os.WriteFile(n.file(encryptionFile), text, 0o644); err != nil {
		return err
	}
	return os.WriteFile(n.file(auditPolicy), live.AuditPolicy(), 0o644)
}

// create lets kind make the cluster. It cannot be interrupted; what it made is deleted by Close.
func (p *plane) create(ctx context.Context, b bootSpec, names []string) error {
	err := p.provider.Create(b.name,
		cluster.CreateWithV1Alpha4Config(config(b.name, p.layout, names)), cluster.CreateWithNodeImage(b.nodeImage),
		cluster.CreateWithKubeconfigPath(filepath.Join(b.dir, "kubeconfig")), cluster.CreateWithRetain(true),
		cluster.CreateWithDisplayUsage(false), cluster.CreateWithDisplaySalutation(false))
	if err != nil {
		if ended := exec.RunErrorForError(err); ended != nil {
			p.kindSaid = string(ended.Output)
		}
		return err
	}
	return ctx.Err()
}

// containersOf are the names that kind gives to the containers of n control-plane nodes, in order.
func containersOf(cluster string, n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = cluster + "-control-plane"
		if i > 0 {
			all[i] += fmt.Sprint(i + 1)
		}
	}
	return all
}

// wire makes the cluster a plane.
func (p *plane) wire(ctx context.Context, b bootSpec, names []string) error {
	for i, container := range containersOf(p.cluster, len(names)) {
		p.containers[names[i]] = container
	}
	if err := p.loadAuthority(ctx, names[0]); err != nil {
		return err
	}
	if err := p.findLoadBalancer(ctx, names); err != nil {
		return err
	}
	if b.plain {
		p.startTailing()
		return p.wirePlain(ctx, names)
	}
	return p.wireNodes(ctx, b, names)
}

// wireNodes deploys the aggregator while the API servers that kubeadm started are there: those that take their place are away
// long enough for controller manager and scheduler to lose their leases.
func (p *plane) wireNodes(ctx context.Context, b bootSpec, names []string) error {
	b.progress("images go to the nodes, and the aggregator is deployed")
	nodes := make([]*live.Node, len(names))
	err := eachOf(ctx, names, func(ctx context.Context, i int) (err error) {
		nodes[i], err = p.readyNode(ctx, names[i], []string{firstKeyID})
		return err
	})
	if err != nil {
		return err
	}
	if err := p.deployAggregators(ctx, nodes[0].Server.URL()); err != nil {
		return err
	}
	if err := p.deployFleets(ctx, nodes); err != nil {
		return err
	}
	b.progress("plugins and reporters go into the API servers' pods")
	// All before any: a kubelet may listen to the API server of another node.
	if err := eachOf(ctx, names, func(ctx context.Context, i int) error { return p.listened(ctx, nodes[i]) }); err != nil {
		return err
	}
	if err := eachOf(ctx, names, func(ctx context.Context, i int) error { return p.inject(ctx, nodes[i]) }); err != nil {
		return err
	}
	for _, n := range nodes {
		p.nodes.Add(n)
	}
	p.startTailing()
	for _, f := range p.fleets {
		b.progress("starting " + f.Stand.APIServer)
		if err := f.start(ctx); err != nil {
			return err
		}
	}
	return nil
}

// deployFleets makes the pods of the further API servers; what is in them waits.
func (p *plane) deployFleets(ctx context.Context, nodes []*live.Node) error {
	all, ctx := errgroup.WithContext(ctx)
	for _, f := range p.fleets {
		for _, n := range nodes {
			if err := f.makeNode(ctx, n, []string{firstKeyID}); err != nil {
				return fmt.Errorf("%s of %s: %w", f.Stand.APIServer, n.Name, err)
			}
		}
		all.Go(func() error { return f.deploy(ctx, nodes[0].Server.URL()) })
	}
	return all.Wait()
}

func (p *plane) loadAuthority(ctx context.Context, node string) error {
	cert, err := inside(ctx, p.container(node), nil, "cat", "/etc/kubernetes/pki/ca.crt")
	if err != nil {
		return err
	}
	key, err := inside(ctx, p.container(node), nil, "cat", "/etc/kubernetes/pki/ca.key")
	if err != nil {
		return err
	}
	if p.authority, err = controlplane.LoadAuthority([]byte(cert+"\n"), []byte(key+"\n")); err != nil {
		return err
	}
	p.authority.ServerName = "localhost" // in every certificate that kind makes
	p.etcdTLS, err = loadEtcdTLS(ctx, p.container(node))
	return err
}

// config is the kind cluster of a plane with control-plane nodes of these names. The nodes have the names that scenarios
// use, whatever kind calls their containers.
func config(cluster string, l layout, names []string) *v1alpha4.Cluster {
	c := &v1alpha4.Cluster{
		TypeMeta: v1alpha4.TypeMeta{Kind: "Cluster", APIVersion: "kind.x-k8s.io/v1alpha4"},
		Name:     cluster,
	}
	for _, name := range names {
		c.Nodes = append(c.Nodes, v1alpha4.Node{
			Role: v1alpha4.ControlPlaneRole, ExtraMounts: mounts(l, name), KubeadmConfigPatches: []string{named("InitConfiguration", name), named("JoinConfiguration", name)},
		})
	}
	return c
}

func mounts(l layout, name string) []v1alpha4.Mount {
	n := l.node(name)
	return []v1alpha4.Mount{
		{HostPath: n.state(), ContainerPath: inNodeState},
		{HostPath: n.sockets(), ContainerPath: inNodeSocket},
		{HostPath: l.shared(), ContainerPath: inNodeShared},
	}
}

// named makes kubeadm register the node under a name.
func named(kind, name string) string {
	return fmt.Sprintf("kind: %s\napiVersion: kubeadm.k8s.io/v1beta4\nnodeRegistration: {name: %s}\n", kind, name)
}

// logger passes what kind says to a progress function. It is kind's logger and its spinner's writer.
type logger struct{ progress func(string) }

var _ log.Logger = logger{}

func (l logger) Warn(message string)               { l.say(message) }
func (l logger) Warnf(format string, args ...any)  { l.say(fmt.Sprintf(format, args...)) }
func (l logger) Error(message string)              { l.say(message) }
func (l logger) Errorf(format string, args ...any) { l.say(fmt.Sprintf(format, args...)) }
func (l logger) V(level log.Level) log.InfoLogger  { return info{l, level == 0} }

// say leaves out the beginnings of steps: kind names each again when it is done.
func (l logger) say(text string) {
	begins := strings.Contains(text, "•")
	text = strings.Trim(text, " \n\r\t✓")
	if text != "" && !begins {
		l.progress("kind: " + text)
	}
}

// info is kind's progress at its lowest verbosity.
type info struct {
	logger
	enabled bool
}

func (i info) Info(message string) {
	if i.enabled {
		i.say(message)
	}
}
func (i info) Infof(format string, args ...any) { i.Info(fmt.Sprintf(format, args...)) }
func (i info) Enabled() bool                    { return i.enabled }
