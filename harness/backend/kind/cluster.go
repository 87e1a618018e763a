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
	"sigs.k8s.io/kind/pkg/cluster"

	"github.com/kmsharness/kmsharness/harness/backend/live"
	"github.com/kmsharness/kmsharness/harness/controlplane"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/netfault"
	"github.com/kmsharness/kmsharness/harness/record/tail"
)

// bootSpec is what a boot needs to know.
type bootSpec struct {
	name, dir, nodeImage, runDir string
	nodes                        int
	programs                     *live.Programs
	archives                     archives
	progress                     func(string)
}

// boot creates a cluster and wires it. On error everything that was made is gone.
func boot(ctx context.Context, b bootSpec) (_ *plane, err error) {
	b.progress = timed(time.Now(), b.progress)
	p := newPlane(b)
	ctx, cancel := context.WithTimeout(ctx, bootTimeout)
	defer cancel()
	defer func() {
		if err != nil {
			err = fmt.Errorf("boot a kind cluster with %d control-plane nodes: %w", b.nodes, err)
			if closing := p.Close(context.WithoutCancel(ctx)); closing != nil {
				err = fmt.Errorf("%w; and: %w", err, closing)
			}
		}
	}()
	names := make([]string, b.nodes)
	for i := range names {
		names[i] = nodeName(i + 1)
	}
	if err := p.prepare(ctx, names); err != nil {
		return nil, err
	}
	if err := p.create(ctx, b, names); err != nil {
		return nil, err
	}
	if err := p.wire(ctx, b, names); err != nil {
		return nil, err
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
	return &plane{Host: live.NewHost(b.programs, b.runDir), layout: layout{b.dir}, cluster: b.name, keyIDs: pluginKeyIDs(), archives: b.archives, nodeImage: b.nodeImage, size: b.nodes,
		provider:   cluster.NewProvider(cluster.ProviderWithDocker(), cluster.ProviderWithLogger(logger{b.progress})),
		containers: map[string]string{}, members: map[string]string{}, leaving: map[string]bool{}, broken: map[history.Link][]string{}, plugins: map[string]map[string]*live.Plugin{}, installed: map[string]bool{},
		journals: tail.NewSet()}
}

// prepare makes the folders that the nodes mount, and starts the remote KMS.
func (p *plane) prepare(ctx context.Context, names []string) (err error) {
	if err := errors.Join(p.layout.makeShared(), os.MkdirAll(p.layout.logs(), 0o755)); err != nil {
		return err
	}
	for _, name := range names {
		if err := p.prepareNode(name, p.keyIDs[:1], false); err != nil {
			return err
		}
	}
	for _, file := range p.archives.files { // a link: the run directory has both folders
		if err := os.Link(file, filepath.Join(p.layout.images(), filepath.Base(file))); err != nil {
			return err
		}
	}
	program, err := p.Programs.Find(ctx, holdProgram)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(program)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(p.layout.shared(), holdProgram), text, 0o755); err != nil {
		return err
	}
	p.kms, err = live.StartRemoteKMS(ctx, p.Host, p.layout.shared(), p.layout.logs())
	return err
}

// prepareNode writes what a node's pods find at their start.
func (p *plane) prepareNode(name string, keyIDs []string, identityFirst bool) error {
	n := p.layout.node(name)
	if err := n.make(); err != nil {
		return err
	}
	text, err := encryption(keyIDs, identityFirst)
	if err != nil {
		return err
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
	b.progress("plugins and reporters go into the API servers' pods")
	nodes, injecting := errgroup.WithContext(ctx)
	for _, name := range names {
		nodes.Go(func() error {
			if _, err := p.wireNode(injecting, name, p.keyIDs[:1]); err != nil {
				return fmt.Errorf("node %s: %w", name, err)
			}
			return nil
		})
	}
	if err := nodes.Wait(); err != nil {
		return err
	}
	p.startTailing()
	b.progress("deploying the aggregator")
	return p.deployAggregators(ctx)
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

// findLoadBalancer finds kind's, or takes the single node for it.
func (p *plane) findLoadBalancer(ctx context.Context, names []string) error {
	p.lb = &loadBalancer{container: p.container(names[0]), tell: p.Tell, phase: live.Running}
	if len(names) > 1 {
		p.lb.container = p.cluster + "-external-load-balancer"
		ip, err := addressOf(ctx, p.lb.container)
		if err != nil {
			return err
		}
		p.lb.ip = ip
	}
	published, err := publishedAt(ctx, p.lb.container)
	if err != nil {
		return err
	}
	p.lb.url = "https://" + published
	if p.lb.http, err = p.adminHTTP(p.lb.url); err != nil {
		return err
	}
	p.front, err = netfault.NewLink("clients to the load balancer", published)
	return err
}

// addressOf is a container's address on the nodes' network.
func addressOf(ctx context.Context, container string) (string, error) {
	ip, err := docker(ctx, "inspect", "--format", "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}", container)
	if err == nil && ip == "" {
		err = fmt.Errorf("container %s has no address", container)
	}
	return ip, err
}

// publishedAt is where the API server of a container is on this machine, host:port.
func publishedAt(ctx context.Context, container string) (string, error) {
	at, err := docker(ctx, "port", container, portAPIServer+"/tcp")
	if err != nil {
		return "", err
	}
	first, _, _ := strings.Cut(at, "\n")
	return first, nil
}
