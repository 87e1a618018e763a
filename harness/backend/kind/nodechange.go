package kind

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/kind/pkg/cluster"
	"sigs.k8s.io/yaml"

	"github.com/kmsharness/kmsharness/harness/backend/live"
)

// joinTimeout bounds kubeadm join: half a minute on an idle machine.
const joinTimeout = 4 * time.Minute

// AddNode implements live.Plane: kind makes the container, kubeadm joins it, and it is wired like the others.
func (p *plane) AddNode(ctx context.Context, name string, told live.Encryption, joined func(context.Context) error) (*live.Node, error) {
	ctx, cancel := context.WithTimeout(ctx, joinTimeout+injectTimeout)
	defer cancel()
	donor, err := p.donor(name)
	if err != nil {
		return nil, err
	}
	if err := os.RemoveAll(p.layout.node(name).dir); err != nil { // of a node that had the name before
		return nil, err
	}
	if err := p.prepareNode(name, told); err != nil {
		return nil, err
	}
	container, err := p.makeContainer(ctx, name)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	p.containers[name] = container
	p.mu.Unlock()
	n, err := p.readyNode(ctx, name, told.PluginIDs())
	if err != nil {
		return nil, err
	}
	if err := p.join(ctx, donor, n); err != nil {
		return nil, fmt.Errorf("join %s: %w", name, err)
	}
	if err := joined(ctx); err != nil {
		return nil, err
	}
	if err := p.lb.change(ctx, func(members []string) []string { return append(members, container) }); err != nil {
		return nil, err
	}
	if err := p.started(ctx, n); err != nil {
		return nil, err
	}
	p.nodes.Add(n)
	return n, nil
}

// endpoint is the control plane's, as every node's container can reach it.
func (p *plane) endpoint(donor *live.Node) string {
	if p.lb.ip == "" {
		return p.container(donor.Name) + ":" + portAPIServer
	}
	return p.lb.container + ":" + portAPIServer
}

// lastWordsTimeout is for an engine that does not answer either.
const lastWordsTimeout = 10 * time.Second

// makeContainer lets kind make the container of a node, as a cluster of its own that is not set up: so it has whatever kind
// gives to nodes on this machine.
func (p *plane) makeContainer(ctx context.Context, name string) (string, error) {
	p.mu.Lock()
	own := fmt.Sprintf("%s-%d", p.cluster, len(p.later)+1)
	p.later = append(p.later, own)
	p.mu.Unlock()
	quiet := cluster.NewProvider(cluster.ProviderWithDocker()) // its progress is that of a scenario's step
	err := quiet.Create(own,
		cluster.CreateWithV1Alpha4Config(config(own, p.layout, []string{name})), cluster.CreateWithNodeImage(p.nodeImage),
		cluster.CreateWithKubeconfigPath(filepath.Join(p.layout.dir, "kubeconfig-"+own)), cluster.CreateWithRetain(true),
		cluster.CreateWithStopBeforeSettingUpKubernetes(true),
		cluster.CreateWithDisplayUsage(false), cluster.CreateWithDisplaySalutation(false))
	container := containersOf(own, 1)[0]
	if err != nil {
		err = fmt.Errorf("%w; the last that the node said: %s", err, lastWords(context.WithoutCancel(ctx), container))
	}
	return container, err
}

// lastWords of a container: kind says what it could not do in one, and not that it had ended.
func lastWords(ctx context.Context, container string) string {
	ctx, cancel := context.WithTimeout(ctx, lastWordsTimeout)
	defer cancel()
	text, err := run(ctx, nil, "sh", "-c", `docker logs --tail 4 "$0" 2>&1`, container)
	if err != nil {
		return err.Error()
	}
	return end(text)
}

// shared are the certificates and keys that all control-plane nodes of a cluster have in common.
func shared() []string {
	return strings.Fields("pki/ca.crt pki/ca.key pki/front-proxy-ca.crt pki/front-proxy-ca.key pki/sa.pub pki/sa.key pki/etcd/ca.crt pki/etcd/ca.key")
}

// join lets kubeadm join a node. Its API server's manifest is changed between the phase that writes it and the one that starts
// the kubelet: so the pod starts once, with its sidecars.
func (p *plane) join(ctx context.Context, donor, n *live.Node) error {
	from, container := p.container(donor.Name), p.container(n.Name)
	if err := copyShared(ctx, from, container); err != nil {
		return err
	}
	own, err := inside(ctx, container, nil, "cat", "/kind/kubeadm.conf")
	if err != nil {
		return err
	}
	text, err := joinConfiguration([]byte(own), p.endpoint(donor))
	if err != nil {
		return err
	}
	const file = "/kind/join.conf"
	if _, err := inside(ctx, container, bytes.NewReader(text), "sh", "-c", "cat > "+file); err != nil {
		return err
	}
	if _, err := inside(ctx, container, nil, "kubeadm", "join", "phase", "control-plane-prepare", "all", "--config", file); err != nil {
		return err
	}
	if err := p.injectManifest(ctx, container); err != nil {
		return err
	}
	// The preflight checks object to what kind's nodes are; and the last wait, which this harness does itself, to an API server
	// below another program.
	_, err = inside(ctx, container, nil, "kubeadm", "join", "--config", file, "--skip-phases=preflight,control-plane-prepare,wait-control-plane")
	return err
}

// copyShared copies the certificates and keys of the cluster from one node to another.
func copyShared(ctx context.Context, from, to string) error {
	files := strings.Join(shared(), " ")
	text, err := inside(ctx, from, nil, "sh", "-c", "tar -C /etc/kubernetes -c "+files+" | base64")
	if err != nil {
		return err
	}
	_, err = inside(ctx, to, strings.NewReader(text), "sh", "-c", "umask 077; mkdir -p /etc/kubernetes && base64 -d | tar -C /etc/kubernetes -x")
	return err
}

// Isolate implements live.Plane: out of the load balancer, and drained.
func (p *plane) Isolate(ctx context.Context, n *live.Node) error {
	gone := p.container(n.Name)
	p.mu.Lock()
	p.leaving[n.Name] = true
	p.mu.Unlock()
	err := p.lb.change(ctx, func(members []string) []string {
		return slices.DeleteFunc(members, func(m string) bool { return m == gone })
	})
	if err != nil {
		return err
	}
	return p.drain(ctx, n)
}

// leaves says whether a node was isolated and is still there.
func (p *plane) leaves(name string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.leaving[name]
}

// RemoveNode implements live.Plane. Its etcd member leaves first: without that, one of two could not be removed any more.
func (p *plane) RemoveNode(ctx context.Context, n *live.Node) error {
	container := p.container(n.Name)
	p.nodes.Remove(n.Name)
	defer n.Close()
	if err := p.removeMember(ctx, n.Name); err != nil {
		return err
	}
	if err := removeContainer(ctx, container); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ledger.forget(p.layout.node(n.Name).state())
	delete(p.containers, n.Name)
	delete(p.leaving, n.Name)
	delete(p.members, n.Name)
	p.plugins.drop(n.Name)
	return nil
}

// joinConfiguration picks the JoinConfiguration out of what kind wrote for a node, and gives it the endpoint of the cluster to
// join.
func joinConfiguration(kubeadm []byte, endpoint string) ([]byte, error) {
	for _, text := range bytes.Split(kubeadm, []byte("\n---")) {
		var document map[string]any
		if err := yaml.Unmarshal(text, &document); err != nil {
			return nil, fmt.Errorf("configuration of kubeadm: %w", err)
		}
		if document["kind"] != "JoinConfiguration" {
			continue
		}
		discovery, _ := document["discovery"].(map[string]any)
		token, _ := discovery["bootstrapToken"].(map[string]any)
		if token == nil {
			return nil, errors.New("configuration of kubeadm: expected a JoinConfiguration with discovery.bootstrapToken")
		}
		token["apiServerEndpoint"] = endpoint
		return yaml.Marshal(document)
	}
	return nil, errors.New("configuration of kubeadm: expected a JoinConfiguration")
}

// drain takes the pods off a node as an administrator does, through another node's API server, and gives aggregators that were
// there their new place. A node that does not answer any more cannot be drained, and is removed all the same.
func (p *plane) drain(ctx context.Context, n *live.Node) error {
	through, err := p.donor(n.Name)
	if err != nil {
		return err
	}
	moving := p.seatsOn(n.Name)
	_, err = p.kubectl(ctx, through, "drain", n.Name, "--ignore-daemonsets", "--delete-emptydir-data", "--force", "--grace-period=2", "--timeout=30s")
	if err != nil && n.Server.Status().Phase == live.Running {
		return fmt.Errorf("drain %s: %w", n.Name, err)
	}
	if len(moving) == 0 {
		return nil
	}
	if err := p.seatAggregators(ctx); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	for s := range moving {
		group.Go(func() error { return s.Start(ctx) })
	}
	return group.Wait()
}

// seatsOn are the seats on a node in which an aggregator runs.
func (p *plane) seatsOn(node string) map[*seat]struct{} {
	all := map[*seat]struct{}{}
	for _, s := range p.allSeats() {
		if _, at := s.pod(); at == node && s.Status().Lives() {
			all[s] = struct{}{}
		}
	}
	return all
}

// kubectl runs on a node, against its own API server.
func (p *plane) kubectl(ctx context.Context, n *live.Node, args ...string) (string, error) {
	words := append([]string{"kubectl", "--kubeconfig=/etc/kubernetes/admin.conf", "--server=https://127.0.0.1:" + portAPIServer}, args...)
	return inside(ctx, p.container(n.Name), nil, words...)
}

// donor is a node whose API server runs, other than the one that is meant: a new node gets its certificates from it, and a node
// that goes is taken out through it.
func (p *plane) donor(except string) (*live.Node, error) {
	for _, n := range p.nodes.List() {
		if n.Name != except && !p.leaves(n.Name) && n.Server.Status().Phase == live.Running {
			return n, nil
		}
	}
	return nil, errors.New("no API server of another node runs")
}

// takeOut removes nodes.
func (p *plane) takeOut(ctx context.Context, names []string) error {
	for _, name := range names {
		n := p.nodes.Get(name)
		if !p.leaves(name) {
			if err := p.Isolate(ctx, n); err != nil {
				return err
			}
		}
		if err := p.deleteNode(ctx, name); err != nil {
			return err
		}
		if err := p.RemoveNode(ctx, n); err != nil {
			return fmt.Errorf("remove %s: %w", name, err)
		}
	}
	return nil
}

// deleteNode deletes a Node object, which may be gone.
func (p *plane) deleteNode(ctx context.Context, name string) error {
	through, err := p.donor(name)
	if err != nil {
		return err
	}
	return through.Admin.RemoveNodeObject(ctx, name)
}

// bringIn adds nodes, one after another: etcd takes one new member at a time.
func (p *plane) bringIn(ctx context.Context, names, keyIDs []string) error {
	for _, name := range names {
		if _, err := p.AddNode(ctx, name, live.Plugins(keyIDs...), func(context.Context) error { return nil }); err != nil {
			return fmt.Errorf("bring %s back: %w", name, err)
		}
	}
	return nil
}
