package kind

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"time"

	"k8s.io/client-go/rest"

	"github.com/kmsharness/kmsharness/harness/backend/live"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/lifecycle/sidecar"
	"github.com/kmsharness/kmsharness/harness/record"
)

const (
	manifest = "/etc/kubernetes/manifests/kube-apiserver.yaml"
	// injectTimeout bounds the time from a changed manifest to an API server that is ready: 40 s on an idle machine.
	injectTimeout = 3 * time.Minute
	// kubeletReacts is more than the kubelet needs to see a changed manifest.
	kubeletReacts = time.Second
	portMetrics   = "9464"
)

// readyNode prepares a node's container for an API server's pod with sidecars: their images are there, and the plugins of keyIDs
// find their command.
func (p *plane) readyNode(ctx context.Context, name string, keyIDs []string) (*live.Node, error) {
	if err := loadImages(ctx, p.container(name)); err != nil {
		return nil, err
	}
	n, err := p.findNode(ctx, name)
	if err != nil {
		return nil, err
	}
	at := place{files: p.layout.node(name).pod(""), slots: newSlots(), make: func(keyID, unit string) (*live.Plugin, error) { return p.newPlugin(name, keyID, unit) }}
	return n, p.pluginsIn(ctx, n, &p.plugins, at, keyIDs)
}

// wirePlain makes nodes known and leaves them as they are.
func (p *plane) wirePlain(ctx context.Context, names []string) error {
	for _, name := range names {
		n, err := p.findNode(ctx, name)
		if err != nil {
			return fmt.Errorf("node %s: %w", name, err)
		}
		p.nodes.Add(n)
	}
	return nil
}

// findNode is a node where its container is now.
func (p *plane) findNode(ctx context.Context, name string) (*live.Node, error) {
	ip, err := addressOf(ctx, p.container(name))
	if err != nil {
		return nil, err
	}
	published, err := publishedAt(ctx, p.container(name))
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	p.members[name] = ip
	p.mu.Unlock()
	return p.newNode(name, ip, "https://"+published)
}

// loadImages imports the archives of the shared folder into a node's store.
func loadImages(ctx context.Context, container string) error {
	const each = "for f in " + inNodeImages + "/*.tar; do ctr --namespace=k8s.io images import --digests $f || exit 1; done"
	_, err := inside(ctx, container, nil, "sh", "-c", each)
	return err
}

// inject changes the manifest of an API server that runs, and waits until it runs below hold and is ready. The old one, which
// the kubelet ends now, would take all of its 30 s of grace, so it is killed. Should the kubelet see its death before the
// manifest, it is killed again.
func (p *plane) inject(ctx context.Context, n *live.Node) error {
	ctx, cancel := context.WithTimeout(ctx, injectTimeout)
	defer cancel()
	container := p.container(n.Name)
	if err := p.injectManifest(ctx, container); err != nil {
		return err
	}
	old := func(ctx context.Context) error {
		_, err := inside(ctx, container, nil, "sh", "-c", killOld)
		return err
	}
	if err := until(ctx, kubeletReacts, "end the API server that kubeadm started", old); err != nil {
		return err
	}
	return p.started(ctx, n)
}

// killOld kills an API server that is not below hold: its parent is the runtime's shim. It fails until there is none.
const killOld = `for pid in $(pgrep -x kube-apiserver); do
  grep -q containerd-shim /proc/$(ps -o ppid= -p $pid | tr -d ' ')/comm && kill -KILL $pid && found=yes
done
[ -z "$found" ]`

// injectManifest changes the manifest in one step.
func (p *plane) injectManifest(ctx context.Context, container string) error {
	old, err := inside(ctx, container, nil, "cat", manifest)
	if err != nil {
		return err
	}
	text, err := sidecar.InjectManifest([]byte(old+"\n"), spec(p.archives.images, slotUnits()))
	if err != nil {
		return err
	}
	const next = "/etc/kubernetes/kube-apiserver.next"
	_, err = inside(ctx, container, bytes.NewReader(text), "sh", "-c", "cat > "+next+" && mv "+next+" "+manifest)
	return err
}

// started waits until the kubelet has started the API server with its sidecars, and it is ready.
func (p *plane) started(ctx context.Context, n *live.Node) error {
	s := n.Server.(*server)
	running := func(ctx context.Context) error {
		if phase := s.Status().Phase; phase != live.Running {
			return fmt.Errorf("the kubelet has not started it")
		}
		return nil
	}
	if err := until(ctx, readyPoll, "start the API server's pod with its sidecars", running); err != nil {
		return err
	}
	return s.Ready(ctx)
}

func (p *plane) newNode(name, ip, url string) (*live.Node, error) {
	l := p.layout.node(name)
	unit, err := newHeld(l.state(), unitAPIServer)
	if err != nil {
		return nil, err
	}
	client, err := p.adminHTTP(url)
	if err != nil {
		return nil, err
	}
	config, err := p.authority.AdminConfig(url)
	if err != nil {
		return nil, err
	}
	admin, err := live.NewClient(config)
	if err != nil {
		return nil, err
	}
	identity := history.Process{Role: history.RoleAPIServer, Node: name}
	n := &live.Node{Name: name, Admin: admin, Server: &server{held: unit, dir: l.state(), url: url, http: client}}
	n.Containers = func(ctx context.Context, sink record.Sink) { p.watchContainers(ctx, name, sink) }
	n.ReporterPlace = live.Place{
		Server: "https://127.0.0.1:" + portAPIServer, Dir: l.state(), SeenDir: inNodeState, Mode: credentials, SocketDir: inNodeSocket,
		MetricsAddress: ":" + portMetrics, MetricsURL: "http://" + ip + ":" + portMetrics + "/metrics", Unit: p.unitOf(l.state(), unitReporter),
	}
	return n, p.follow(l.state(), unitAPIServer, identity)
}

// adminHTTP is a plain client of an administrator.
func (p *plane) adminHTTP(url string) (*http.Client, error) {
	config, err := p.authority.AdminConfig(url)
	if err != nil {
		return nil, err
	}
	return rest.HTTPClientFor(config)
}

// unitOf makes units for a program of the system under test in a container of a node.
func (p *plane) unitOf(dir, name string) func(history.Process, func(context.Context) (live.Command, error)) live.Unit {
	return func(identity history.Process, command func(context.Context) (live.Command, error)) live.Unit {
		u, err := newHeld(dir, name)
		if err != nil {
			return broken{err}
		}
		u.command = wordsOf(command)
		if err := p.follow(dir, name, identity); err != nil {
			return broken{err}
		}
		return u
	}
}

// wordsOf are the words that hold runs.
func wordsOf(command func(context.Context) (live.Command, error)) func(context.Context) ([]string, error) {
	return func(ctx context.Context) ([]string, error) {
		c, err := command(ctx)
		return append([]string{inImage(c.Program)}, c.Args...), err
	}
}

// inImage is where the images of this project have their program.
func inImage(program string) string {
	if program == "" || program[0] == '/' {
		return program
	}
	return "/" + program
}

// newPlugin is the plugin of a keyID in a container of the API server's pod of a node.
func (p *plane) newPlugin(node, keyID, unit string) (*live.Plugin, error) {
	l := p.layout.node(node)
	return p.pluginIn(l.pod(""), unit, history.Process{Role: history.RolePlugin, Node: node, KeyID: keyID}, live.HostSocket(l.sockets(), keyID), func() string { return p.key(keyID) }, &p.profile)
}

// key is the name of the key behind the plugins of a keyID.
func (p *plane) key(keyID string) string { return p.kms.Key("", keyID) }

// pluginIn is a plugin in the container of a unit; socket is on this machine, empty if it cannot be seen there, and key names its key at the
// remote KMS.
func (p *plane) pluginIn(f podFiles, unit string, identity history.Process, socket string, key func() string, profile *live.Profile) (*live.Plugin, error) {
	node, keyID := identity.Node, identity.KeyID
	control, journal := "ctl-"+keyID+".sock", journalPrefix+node+"-"+keyID+journalSuffix
	g, err := live.NewPlugin(node, keyID, socket, f.file(control), f.file(journal))
	if err != nil {
		return nil, err
	}
	g.Identity = identity
	u, err := newHeld(f.dir, unit)
	if err != nil {
		return nil, err
	}
	u.command = func(context.Context) ([]string, error) {
		words := append([]string{"/" + live.PluginProgram}, live.PluginArgs(node, keyID, inNodeSocket, f.in(control), f.in(journal), inNodeShared+"/kms.sock", key())...)
		// The reporter is not root, and nobody else can reach the folder.
		return append(append(append(words, "--socket-mode=0666"), profile.Args()...), p.Programs.PluginArgs...), nil
	}
	u.ready = g.Healthy
	g.Unit = u
	return g, nil
}

// pluginsIn makes the containers for plugins of a node's pod known, before they are there; the plugins of keyIDs find their command, the
// other containers wait for one.
func (p *plane) pluginsIn(ctx context.Context, n *live.Node, all *places, at place, keyIDs []string) error {
	for _, s := range at.slots {
		if err := p.followWhoever(at.files.dir, s.unit, s.who); err != nil {
			return err
		}
	}
	all.put(n.Name, at)
	for _, k := range keyIDs {
		g, err := all.take(ctx, n, k)
		if err != nil {
			return err
		}
		if err := g.Unit.(*held).writeCommand(ctx); err != nil {
			return err
		}
	}
	return nil
}

// AddPlugin implements live.Plane.
func (p *plane) AddPlugin(ctx context.Context, n *live.Node, keyID string) (*live.Plugin, error) {
	return p.plugins.start(ctx, n, keyID)
}

// Etcd implements live.Plane.
func (p *plane) Etcd(node string) ([]live.Target, error) {
	var all []live.Target
	for _, n := range p.nodes.List() {
		if node == "" || node == "all" || node == n.Name {
			all = append(all, live.Target{Unit: &etcd{container: p.container(n.Name), tell: p.Tell, node: n.Name}, Identity: history.Process{Role: history.RoleEtcd, Node: n.Name}})
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("there is no node %q", node)
	}
	return all, nil
}

// group runs f for every node at the same time.
func (p *plane) group(ctx context.Context, f func(context.Context, *live.Node) error) error {
	nodes := p.nodes.List()
	names := make([]string, len(nodes))
	for i, n := range nodes {
		names[i] = n.Name
	}
	return eachOf(ctx, names, func(ctx context.Context, i int) error { return f(ctx, nodes[i]) })
}
