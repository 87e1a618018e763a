package operator_test

import (
	"bufio"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
	kmsapi "k8s.io/kms/apis/v2"
	"k8s.io/utils/clock"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/fakeplugin/endpoint"
	"github.com/kmsharness/kmsharness/fakeplugin/plugin"
	"github.com/kmsharness/kmsharness/fakeplugin/remotekms"
	"github.com/kmsharness/kmsharness/fakeplugin/server"
	"github.com/kmsharness/kmsharness/harness/controlplane"
	"github.com/kmsharness/kmsharness/internal/host"
	"github.com/kmsharness/kmsharness/operator/config"
	"github.com/kmsharness/kmsharness/operator/core"
	"github.com/kmsharness/kmsharness/operator/preflight"
	"github.com/kmsharness/kmsharness/operator/revision"
	"github.com/kmsharness/kmsharness/reporter"
	"github.com/kmsharness/kmsharness/reporter/options"
	"github.com/kmsharness/kmsharness/reporter/probe"
	"github.com/kmsharness/kmsharness/reporter/publish"
)

// bench is an Executor over the API servers of a control plane: plugins and reporters run in this process.
type bench struct {
	cp  *controlplane.ControlPlane
	kms *remotekms.KMS
	dir string

	mu    sync.Mutex
	nodes map[string]*benchNode
	form  publish.Form // of reporters
}

// speak sets the form of reporters that are started from now on.
func (b *bench) speak(f publish.Form) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.form = f
}

type benchNode struct {
	server   *controlplane.APIServer
	client   kubernetes.Interface
	rest     *rest.Config
	revision map[string]int // by the hash of a file
	file     string         // hash of the one that was rolled out last
	took     bool           // it is loaded
	plugins  map[uint64]*running
	reports  []uint64
	reporter *running
}

// running is something that was started, until its end.
type running struct {
	config config.Plugin
	stop   func()
}

func newBench(cp *controlplane.ControlPlane, dir string) (*bench, error) {
	kms, err := remotekms.New(remotekms.Options{})
	if err != nil {
		return nil, err
	}
	b := &bench{cp: cp, kms: kms, dir: dir, form: publish.Conditions, nodes: map[string]*benchNode{}}
	for _, s := range cp.Servers() {
		cfg, err := cp.AdminConfig(s.URL())
		if err != nil {
			return nil, err
		}
		client, err := kubernetes.NewForConfig(cfg)
		if err != nil {
			return nil, err
		}
		b.nodes[s.Name()] = &benchNode{server: s, client: client, rest: cfg, revision: map[string]int{}, plugins: map[uint64]*running{}}
		if err := os.Mkdir(filepath.Join(dir, s.Name()), 0o700); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// close ends everything.
func (b *bench) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, n := range b.nodes {
		if n.reporter != nil {
			n.reporter.stop()
		}
		for _, p := range n.plugins {
			p.stop()
		}
	}
}

// spawn runs something until it is stopped.
func spawn(c config.Plugin, run func(context.Context)) *running {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); run(ctx) }()
	return &running{c, func() { cancel(); <-done }}
}

func (b *bench) Nodes(ctx context.Context) (map[string]core.Node, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := map[string]core.Node{}
	for name, n := range b.nodes {
		seen := core.Node{Plugins: map[uint64]config.Plugin{}, Reporter: slices.Clone(n.reports)}
		if hash, err := n.loaded(ctx); err == nil {
			seen.Up, seen.Loaded = true, n.revision[hash]
			n.took = hash == n.file
		}
		for id, p := range n.plugins {
			seen.Plugins[id] = p.config
		}
		out[name] = seen
	}
	return out, nil
}

// loaded is the hash of the file that an API server has in force, as its metrics name it.
func (n *benchNode) loaded(ctx context.Context) (string, error) {
	if !n.server.Running() {
		return "", errors.New("it is down")
	}
	if n.took { // its metrics are long, and nothing unloads a file
		return n.file, nil
	}
	client, err := rest.HTTPClientFor(n.rest)
	if err != nil {
		return "", err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, n.rest.Host+"/metrics", nil)
	if err != nil {
		return "", err
	}
	response, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 1<<20)
	hash := ""
	for lines.Scan() {
		if rest, ok := strings.CutPrefix(lines.Text(), "apiserver_encryption_config_controller_last_config_info{"); ok {
			_, rest, _ = strings.Cut(rest, `,hash="sha256:`)
			hash, _, _ = strings.Cut(rest, `"`)
		}
	}
	return hash, lines.Err()
}

func (b *bench) StartPlugins(ctx context.Context, node string, plugins []revision.Plugin) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := b.nodes[node]
	for _, p := range plugins {
		if old := n.plugins[p.KeyID]; old != nil {
			old.stop()
		}
		r, err := b.plugin(ctx, node, revision.Socket(filepath.Join(b.dir, node), p.KeyID), strconv.FormatUint(p.KeyID, 10), p.Config)
		if err != nil {
			return err
		}
		n.plugins[p.KeyID] = r
	}
	return nil
}

// plugin serves one at a socket. Its key in the remote KMS is named by the end of what the configuration calls it.
func (b *bench) plugin(ctx context.Context, node, socket, keyID string, c config.Plugin) (*running, error) {
	at, err := endpoint.Parse(socket)
	if err != nil {
		return nil, err
	}
	p := plugin.New(plugin.Options{Name: node + "/" + keyID, Key: path.Base(c.KeyName()), Service: b.kms})
	if err := p.Poll(ctx); err != nil {
		return nil, err
	}
	s := server.New(server.Options{Listen: at, Node: node, KeyID: keyID, Plugin: &plugin.Service{Plugin: p}})
	if err := s.Start(); err != nil {
		return nil, err
	}
	return spawn(c, func(ctx context.Context) {
		var wg sync.WaitGroup
		wg.Go(func() { p.Run(ctx) })
		_ = s.Run(ctx) // it has ended with its context
		wg.Wait()
	}), nil
}

func (b *bench) StopPlugins(_ context.Context, node string, ids []uint64) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, id := range ids {
		if p := b.nodes[node].plugins[id]; p != nil {
			p.stop()
			delete(b.nodes[node].plugins, id)
		}
	}
	return nil
}

func (b *bench) Report(_ context.Context, node string, ids []uint64) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := b.nodes[node]
	if n.reporter != nil {
		n.reporter.stop()
		n.reporter = nil
	}
	n.reports = slices.Clone(ids)
	if len(ids) == 0 {
		return nil
	}
	kubeconfig, err := b.cp.AdminKubeconfig(n.server.URL())
	if err != nil {
		return err
	}
	file := filepath.Join(b.dir, node, "reporter.kubeconfig")
	if err := os.WriteFile(file, kubeconfig, 0o600); err != nil {
		return err
	}
	o := options.Options{Node: node, Kubeconfig: file, Form: b.form, Connectivity: options.Loopback, Operator: publish.KubeAPIServer,
		Timing: contract.Timing{Interval: interval, Jitter: interval / 10, ProbeTimeout: interval, WriteTimeout: interval, AggregatorLatency: interval}}
	for _, id := range ids {
		socket := strings.TrimPrefix(contract.SocketPath(filepath.Join(b.dir, node), strconv.FormatUint(id, 10)), "unix://")
		o.Plugins = append(o.Plugins, probe.Plugin{KeyID: strconv.FormatUint(id, 10), Socket: socket})
	}
	n.reporter = spawn(config.Plugin{}, func(ctx context.Context) { _ = reporter.Run(ctx, host.Host{}, o, slog.New(slog.DiscardHandler)) })
	return nil
}

const interval = time.Second

func (b *bench) RollOut(_ context.Context, node string, rev int, file []byte) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := b.nodes[node]
	text := []byte(strings.ReplaceAll(string(file), contract.SocketDir, filepath.Join(b.dir, node)))
	sum := sha256.Sum256(text)
	hash := hex.EncodeToString(sum[:])
	n.revision[hash], n.took, n.file = rev, n.took && n.file == hash, hash
	tmp := n.server.EncryptionFile() + ".new"
	if err := os.WriteFile(tmp, text, 0o600); err != nil {
		return err
	}
	return os.Rename(tmp, n.server.EncryptionFile())
}

func (b *bench) Check(ctx context.Context, p config.Plugin, hash string) core.Preflight {
	socket := contract.SocketPath(b.dir, "try")
	r, err := b.plugin(ctx, "none", socket, "0", p)
	if err != nil {
		return core.Preflight{Hash: hash, Message: err.Error()}
	}
	defer r.stop()
	conn, err := grpc.NewClient(socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return core.Preflight{Hash: hash, Message: err.Error()}
	}
	defer conn.Close()
	return preflight.Check(ctx, kmsapi.NewKeyManagementServiceClient(conn), hash, preflight.Options{Time: preflight.Real(clock.RealClock{}), Random: rand.Reader,
		UID: uuid.NewString, Pause: 100 * time.Millisecond, Call: 10 * time.Second})
}

// Rewrite goes through one API server after another.
func (b *bench) Rewrite(ctx context.Context, _ uint64) error {
	var clients []kubernetes.Interface
	for _, n := range b.nodes {
		clients = append(clients, n.client)
	}
	list, err := clients[0].CoreV1().Secrets(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range list.Items {
		s := &list.Items[i]
		if err := rewrite(ctx, clients[i%len(clients)], s.Namespace, s.Name); err != nil {
			return fmt.Errorf("rewrite %s/%s: %w", s.Namespace, s.Name, err)
		}
	}
	return nil
}

func rewrite(ctx context.Context, c kubernetes.Interface, namespace, name string) error {
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		s, err := c.CoreV1().Secrets(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		_, err = c.CoreV1().Secrets(namespace).Update(ctx, s, metav1.UpdateOptions{})
		return err
	})
	if apierrors.IsNotFound(err) {
		return nil // gone since the list
	}
	return err
}
