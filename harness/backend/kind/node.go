package kind

import (
	"context"
	"crypto/sha256"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/e2e-framework/klient/k8s/resources"

	"github.com/kmsharness/kmsharness/harness/cluster"
	"github.com/kmsharness/kmsharness/harness/controlplane"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/record"
	"github.com/kmsharness/kmsharness/internal/atomicfile"
	"github.com/kmsharness/kmsharness/operator/sidecar"
)

const (
	manifest = "/etc/kubernetes/manifests/kube-apiserver.yaml"
	// injectTimeout bounds the time from a changed manifest to an API server that is ready: 40 s on an idle machine.
	injectTimeout = 3 * time.Minute
	// kubeletReacts is more than the kubelet needs to see a changed manifest.
	kubeletReacts = time.Second
	portMetrics   = "9464"
)

// machine is the container of a node.
type machine struct {
	container container
	address   string // on the nodes' network
	leaving   bool   // the node was isolated and is still there
}

// machines are the containers of a cluster's nodes, by the names of the nodes. It is safe for concurrent use.
type machines struct {
	mu  sync.Mutex
	all map[string]machine
}

func (m *machines) machine(node string) machine {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.all[node]
}

// container of a node, or "".
func (m *machines) container(node string) container { return m.machine(node).container }

// address of a node on the nodes' network.
func (m *machines) address(node string) string { return m.machine(node).address }

// leaves reports whether a node was isolated and is still there.
func (m *machines) leaves(node string) bool { return m.machine(node).leaving }

// change changes what is known of a node's container, which may be new.
func (m *machines) change(node string, do func(*machine)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.all == nil {
		m.all = map[string]machine{}
	}
	is := m.all[node]
	do(&is)
	m.all[node] = is
}

func (m *machines) forget(node string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.all, node)
}

// readyNode prepares a node's container for an API server's pod with sidecars: their images are there, and the plugins of keyIDs
// find their command.
func (p *controlPlane) readyNode(ctx context.Context, name string, keyIDs []string) (*cluster.Node, error) {
	const each = "for f in " + inNodeImages + "/*.tar; do ctr --namespace=k8s.io images import --digests $f || exit 1; done"
	if _, err := p.container(name).exec(ctx, "sh", "-c", each); err != nil {
		return nil, err
	}
	n, err := p.findNode(ctx, name, keyIDs)
	if err != nil {
		return nil, err
	}
	return n, serverOf(n).plugins.prepare(ctx, n, keyIDs)
}

// findNode is a node where its container is now, with a pod for the plugins of keyIDs.
func (p *controlPlane) findNode(ctx context.Context, name string, keyIDs []string) (*cluster.Node, error) {
	c := p.container(name)
	ip, err := c.address(ctx)
	if err != nil {
		return nil, err
	}
	published, err := c.published(ctx)
	if err != nil {
		return nil, err
	}
	p.change(name, func(m *machine) { m.address = ip })
	l := p.layout.node(name)
	s, err := newServer(p.Authority, l.state(), "https://"+published)
	if err != nil {
		return nil, err
	}
	s.info.AuditLog, s.info.Addr = l.file(auditLog), ip+":"+portAPIServer
	s.plugins = p.pluginsOf("", name, &p.profile, p.containersFor(keyIDs), func(keyID string) string { return cluster.HostSocket(l.sockets(), keyID) })
	n := &cluster.Node{Name: name, Admin: s.client, Server: s, ServerInfo: s.info}
	n.Containers = func(ctx context.Context, sink record.Sink) {
		watchContainers(ctx, c, name, sink, &p.starting)
	}
	own := l.pod("").config()
	n.ReporterPlace = cluster.Place{
		Dir: own.dir, SeenDir: own.seen, Mode: credentials, SocketDir: inNodeSocket,
		MetricsAddress: ":" + portMetrics, MetricsURL: "http://" + ip + ":" + portMetrics + "/metrics",
		Unit: p.units.placeOf(l.pod("").unit(unitReporter), name),
	}
	p.connect(n)
	return n, p.units.followOne(s.unitKey, name, history.Process{Role: history.RoleAPIServer, Node: name})
}

// connect gives the reporter in the static pod on a node the way to the API of the current scenario. One that streams has no use for the API.
func (p *controlPlane) connect(n *cluster.Node) {
	at := &n.ReporterPlace
	at.Aggregators, at.InCluster = p.aggregators.addresses(), nil
	switch p.connectivity {
	case history.ConnectService:
		at.Server = "https://" + p.lb.host() + ":" + portAPIServer
		at.InCluster = &cluster.InCluster{Dir: p.layout.node(n.Name).pod("").account().dir, AccountKey: func() ([]byte, error) { return p.accountKey, nil }}
	case history.ConnectStatic, history.ConnectAltSvc:
		at.Server = p.serverFor(n.Name)
	default:
		at.Server = "https://" + ownAPIServer
	}
}

// spec is that of the static pod of a node, in the revision that comes.
func (p *controlPlane) spec(n *cluster.Node) sidecar.Spec {
	s := spec(p.archives.images, p.lb.host(), serverOf(n).podRevision())
	if p.podNamespace() != metav1.NamespaceSystem {
		s.Namespace = p.podNamespace()
	}
	return s
}

// kubeletKnows waits until the kubelet of a node knows from an API server which pods it has. Before that it deletes none, and would start
// the API server that kubeadm made again instead of the one of the new manifest, for minutes. One that has joined a moment ago is not so
// far: it tells by the status of its API server's mirror pod, which it can write only when it knows that pod.
//
// It also waits for the kubelet's CSINode. A kubelet that could not write it in the 20 s after its start tries once more, two minutes after, and ends if
// no API server answers then, for example while the pod is replaced for a revision: the kubelet that follows knows no pods, and the revision never comes.
func kubeletKnows(ctx context.Context, c container, node string) error {
	ctx, cancel := context.WithTimeout(ctx, injectTimeout)
	defer cancel()
	return until(ctx, kubeletReacts, "wait until the kubelet knows its pods", func(ctx context.Context) error {
		phase, err := c.kubectl(ctx, "get", "pod", staticPod(node), "--namespace=kube-system", "--output=jsonpath={.status.phase}")
		if err == nil && phase != string(corev1.PodRunning) {
			err = fmt.Errorf("the phase of %s is %q, expected %s", staticPod(node), phase, corev1.PodRunning)
		}
		if err == nil {
			_, err = c.kubectl(ctx, "get", "csinode", node)
		}
		return err
	})
}

// inject changes the manifest of an API server that runs, and waits until it runs below the supervisor and is ready. The old one, which
// the kubelet ends now, would take all of its 30 s of grace, so it is killed. Should the kubelet see its death before the
// manifest, it is killed again.
func inject(ctx context.Context, c container, s *server, spec sidecar.Spec) error {
	ctx, cancel := context.WithTimeout(ctx, injectTimeout)
	defer cancel()
	if err := injectManifest(ctx, c, manifest, spec); err != nil {
		return err
	}
	// It is not below the supervisor: its parent is the runtime's shim. The script fails until there is none.
	const killOld = `for pid in $(pgrep -x kube-apiserver); do
  grep -q containerd-shim /proc/$(ps -o ppid= -p $pid | tr -d ' ')/comm && kill -KILL $pid && found=yes
done
[ -z "$found" ]`
	old := func(ctx context.Context) error {
		_, err := c.exec(ctx, "sh", "-c", killOld)
		return err
	}
	if err := until(ctx, kubeletReacts, "end the API server that kubeadm started", old); err != nil {
		return err
	}
	return s.started(ctx)
}

// injectManifest changes the manifest in a file in one step.
func injectManifest(ctx context.Context, c container, file string, spec sidecar.Spec) error {
	old, err := c.read(ctx, file)
	if err != nil {
		return err
	}
	text, err := sidecar.InjectManifest(append(old, '\n'), spec)
	if err != nil {
		return err
	}
	return c.write(ctx, file, "/etc/kubernetes/kube-apiserver.next", text)
}

// server is the API server of a node.
type server struct {
	*held
	client *cluster.Client // an administrator's
	// info has no audit log of an aggregated API server: the requests that matter are in those of the kube-apiservers.
	info cluster.ServerInfo
	// resources that it encrypts, as encryption configurations name them; none: secrets.
	resources []string
	plugins   *podPlugins
	revision  atomic.Int64 // of its pod
	// rolling is set while the pod is being replaced, and reports whether the API server ran before. One revision is rolled out at a time.
	rolling *bool
}

var _ cluster.Server = (*server)(nil)

// serverOf is the API server of a node of this backend.
func serverOf(n *cluster.Node) *server { return n.Server.(*server) }

// newServer is the API server whose pod has its files in a folder of this machine.
func newServer(a controlplane.Authority, dir, url string) (*server, error) {
	unit, err := newHeld(unitKey{dir, unitAPIServer})
	if err != nil {
		return nil, err
	}
	client, err := cluster.NewAdmin(a, url)
	s := &server{held: unit, client: client, info: cluster.ServerInfo{URL: url, LogFile: filepath.Join(dir, logFile(unitAPIServer)), EncryptionFile: filepath.Join(dir, encryptionFile)}}
	s.revision.Store(firstRevision)
	return s, err
}

// objectsThrough is an administrator's client of an API server.
func (p *controlPlane) objectsThrough(server string) (*resources.Resources, error) {
	config, err := p.AdminConfig(server)
	if err != nil {
		return nil, err
	}
	return resources.New(config)
}

// objects is objectsThrough for any API server that runs.
func (p *controlPlane) objects() (*resources.Resources, error) {
	through, err := p.donor("")
	if err != nil {
		return nil, err
	}
	return p.objectsThrough(through.URL)
}

// started waits until the kubelet has started the API server with its sidecars, and it is ready.
func (s *server) started(ctx context.Context) error {
	if err := s.plugins.startUnderTest(ctx); err != nil {
		return err
	}
	running := func(context.Context) error {
		if phase := s.Status().Phase; phase != cluster.Running {
			return fmt.Errorf("the kubelet has not started it")
		}
		return nil
	}
	if err := until(ctx, readyPoll, "start the API server's pod with its sidecars", running); err != nil {
		return err
	}
	return s.Ready(ctx)
}

// Start implements cluster.Unit: it returns when the API server lives, which it always comes to, and gives it a moment to become
// ready, which it does not while a plugin is dead.
func (s *server) Start(ctx context.Context) error {
	if err := s.held.Start(ctx); err != nil {
		return err
	}
	if err := until(ctx, readyPoll, "start "+s.unit, s.ask("/livez")); err != nil {
		return err
	}
	ready, cancel := context.WithTimeout(ctx, cluster.ReadyGrace)
	defer cancel()
	_ = s.Ready(ready)
	return ctx.Err()
}

// Ready implements cluster.Server.
func (s *server) Ready(ctx context.Context) error {
	return until(ctx, readyPoll, "wait until "+s.info.URL+" is ready", s.ask("/readyz"))
}

func (s *server) ask(path string) func(context.Context) error { return asking(s.client, path) }

// asking returns an error unless a page is there.
func asking(c *cluster.Client, path string) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := c.Get(ctx, path)
		return err
	}
}

// reset starts the plugins that a scenario begins with, holds the others, and gives the API server its configuration. One whose
// configuration has changed is started again, which is sooner than a stock API server looks at it.
func (s *server) reset(ctx context.Context, n *cluster.Node, keyIDs []string) error {
	if err := s.plugins.reset(ctx, n, keyIDs); err != nil {
		return err
	}
	if _, changed, err := n.Configure(cluster.Plugins(keyIDs...)); err != nil {
		return err
	} else if changed {
		if err := s.Kill(ctx); err != nil {
			return err
		}
	}
	if err := s.Start(ctx); err != nil {
		return err
	}
	return s.Ready(ctx)
}

// SetEncryption implements cluster.Server.
func (s *server) SetEncryption(told cluster.Encryption) (hash string, err error) {
	text, err := encryptionText(told, s.resources)
	if err != nil {
		return "", err
	}
	return s.RollOut(text)
}

// RollOut implements cluster.Server: in the node the sockets are where the file says. The file is put in place in one step.
func (s *server) RollOut(file []byte) (hash string, err error) {
	if err := atomicfile.Write(s.info.EncryptionFile, file, 0o644); err != nil {
		return "", fmt.Errorf("encryption configuration: %w", err)
	}
	return fmt.Sprintf("sha256:%x", sha256.Sum256(file)), nil
}

// encryptionText is the EncryptionConfiguration that says what an API server is told, and nothing else: one with a provider whose
// plugin is held is not ready.
func encryptionText(told cluster.Encryption, resources []string) ([]byte, error) {
	e := told.Config(func(keyID string) string { return cluster.HostSocket(inNodeSocket, keyID) })
	e.Resources = resources
	return e.YAML()
}
