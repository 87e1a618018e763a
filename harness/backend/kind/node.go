package kind

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/kmsharness/kmsharness/harness/assets"
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

// server is the API server of a node.
type server struct {
	*held
	dir  string // of its files on this machine
	url  string
	http *http.Client // an administrator's
	// resources that it encrypts, as encryption configurations name them; none: secrets.
	resources []string
}

var _ live.Server = (*server)(nil)

func (s *server) file(name string) string { return filepath.Join(s.dir, name) }

// Start implements live.Unit: it returns when the API server lives, which it always comes to, and gives it a moment to become
// ready, which it does not while a plugin is dead.
func (s *server) Start(ctx context.Context) error {
	if err := s.held.Start(ctx); err != nil {
		return err
	}
	if err := until(ctx, readyPoll, "start "+s.name, s.ask("/livez")); err != nil {
		return err
	}
	ready, cancel := context.WithTimeout(ctx, live.ReadyGrace)
	defer cancel()
	_ = s.Ready(ready)
	return ctx.Err()
}

// Ready implements live.Server.
func (s *server) Ready(ctx context.Context) error {
	return until(ctx, readyPoll, "wait until "+s.url+" is ready", s.ask("/readyz"))
}

func (s *server) ask(path string) func(context.Context) error {
	return func(ctx context.Context) error {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+path, nil)
		if err != nil {
			return err
		}
		response, err := s.http.Do(r)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("%s: %s", path, response.Status)
		}
		return nil
	}
}

// URL implements live.Server.
func (s *server) URL() string { return s.url }

// AuditLog implements live.Server.
func (s *server) AuditLog() string { return s.file(auditLog) }

// LogFile implements live.Server.
func (s *server) LogFile() string { return s.file(logFile(unitAPIServer)) }

// SetEncryption implements live.Server.
func (s *server) SetEncryption(told live.Encryption) (hash string, err error) {
	text, err := encryptionText(told, s.resources)
	if err != nil {
		return "", err
	}
	return s.RollOut(text)
}

// RollOut implements live.Server: in the node the sockets are where the file says.
func (s *server) RollOut(file []byte) (hash string, err error) {
	if err := writeAtomically(s.file(encryptionFile), file); err != nil {
		return "", fmt.Errorf("encryption configuration: %w", err)
	}
	return fmt.Sprintf("sha256:%x", sha256.Sum256(file)), nil
}

// encryptionText is the EncryptionConfiguration that says what an API server is told, and nothing else: one with a provider whose
// plugin is held is not ready.
func encryptionText(told live.Encryption, resources []string) ([]byte, error) {
	e := told.Config(func(keyID string) string { return live.HostSocket(inNodeSocket, keyID) })
	e.Resources = resources
	if err := e.Validate(); err != nil {
		return nil, err
	}
	return e.YAML()
}

// writeAtomically puts a file in place in one step.
func writeAtomically(path string, content []byte) error {
	next := path + ".next"
	if err := os.WriteFile(next, content, 0o644); err != nil {
		return err
	}
	return os.Rename(next, path)
}

// uidReporter is the user of the reporter's container, so that its connections can be told from others'.
const uidReporter = 65532

// Names of the volumes.
const (
	volumeState  = "state"
	volumeShared = "shared"
	volumeSocket = "sockets"
)

// folders of the node in every container. The sockets may come and go, so their folder is mounted, not they.
func folders() []sidecar.Mount {
	return []sidecar.Mount{
		{Name: volumeState, HostPath: inNodeState, Type: corev1.HostPathDirectory, MountPath: inNodeState},
		{Name: volumeShared, HostPath: inNodeShared, Type: corev1.HostPathDirectory, MountPath: inNodeShared},
		{Name: volumeSocket, HostPath: inNodeSocket, Type: corev1.HostPathDirectory, MountPath: inNodeSocket},
	}
}

// images of the containers.
type images struct{ plugin, reporter, aggregator, apiServer string }

// spec is what the API server's static pod of a node gets: containers for plugins, the API server's own wiring, the reporter. The
// words of their commands are in files, so a scenario that needs others does not change the pod.
func spec(img images, plugins []string) sidecar.Spec {
	var s sidecar.Spec
	for _, unit := range plugins {
		s.Sidecars = append(s.Sidecars, sidecar.Sidecar{
			Name: containerName(unit), Image: img.plugin, Command: holdCommand(unit, "--command", inNode(commandFile(unit))),
			Mounts: folders(), SecurityContext: &corev1.SecurityContext{RunAsUser: ptr.To[int64](0)},
		})
	}
	s.Sidecars = append(s.Sidecars, sidecar.Sidecar{
		Name: containerName(unitReporter), Image: img.reporter, Command: holdCommand(unitReporter, "--command", inNode(commandFile(unitReporter))),
		Mounts: folders(), AfterAPIServer: true,
		SecurityContext: &corev1.SecurityContext{RunAsUser: ptr.To[int64](uidReporter), RunAsGroup: ptr.To[int64](uidReporter)},
	})
	s.APIServer = sidecar.APIServer{
		Flags: []sidecar.Flag{
			{Name: "encryption-provider-config", Value: inNode(encryptionFile)},
			{Name: "encryption-provider-config-automatic-reload", Value: "true"},
			{Name: "audit-policy-file", Value: inNode(auditPolicy)},
			{Name: "audit-log-path", Value: inNode(auditLog)},
			{Name: "audit-log-mode", Value: "blocking"}, // what a client saw is in the log
			{Name: "audit-log-format", Value: "json"},
			{Name: "audit-log-maxsize", Value: "100000"}, // one file: a rotated one would have to be found by its reader
			{Name: "vmodule", Value: "envelope=6"},
		},
		Mounts: folders(), WithoutLiveness: true,
		// An API server of our own node image can be told to look for a changed configuration more often; a stock one ignores it.
		Wrap: append(holdCommand(unitAPIServer, "--env", assets.EnvEncryptionPoll+"="+encryptionPoll.String()), "--"),
	}
	return s
}

// holdCommand runs a unit below hold.
func holdCommand(unit string, more ...string) []string { return holdIn(inNodeState, unit, more...) }

// holdIn is the same with the unit's files in another folder of the node.
func holdIn(dir, unit string, more ...string) []string {
	return append([]string{
		filepath.Join(inNodeShared, holdProgram), "--control", "unix://" + filepath.Join(dir, holdSocket(unit)),
		"--journal", filepath.Join(dir, holdJournal(unit)), "--log", filepath.Join(dir, logFile(unit)),
	}, more...)
}
