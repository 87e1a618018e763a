package kind

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
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

// listened waits until the kubelet of a node knows from an API server which pods it has. Before that it deletes none, and would start the API server that
// kubeadm made again instead of the one of the new manifest, for minutes. One that has joined a moment ago is not so far: it tells by the status
// of its API server's mirror pod, which it can write only when it knows that pod.
func (p *plane) listened(ctx context.Context, n *live.Node) error {
	ctx, cancel := context.WithTimeout(ctx, injectTimeout)
	defer cancel()
	return until(ctx, kubeletReacts, "wait until the kubelet knows its pods", func(ctx context.Context) error {
		phase, err := p.kubectl(ctx, n, "get", "pod", "kube-apiserver-"+n.Name, "--namespace=kube-system", "--output=jsonpath={.status.phase}")
		if err == nil && phase != string(corev1.PodRunning) {
			err = fmt.Errorf("the phase of kube-apiserver-%s is %q, expected %s", n.Name, phase, corev1.PodRunning)
		}
		return err
	})
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
