package kind

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"sigs.k8s.io/kind/pkg/cluster"

	"github.com/kmsharness/kmsharness/harness/backend/live"
)

// joinTimeout bounds kubeadm join: half a minute on an idle machine.
const joinTimeout = 4 * time.Minute

// AddNode implements live.Plane: kind makes the container, kubeadm joins it, and it is wired like the others.
func (p *plane) AddNode(ctx context.Context, name string, keyIDs []string, identityFirst bool, joined func(context.Context) error) (*live.Node, error) {
	ctx, cancel := context.WithTimeout(ctx, joinTimeout+injectTimeout)
	defer cancel()
	donor, err := p.donor()
	if err != nil {
		return nil, err
	}
	if err := os.RemoveAll(p.layout.node(name).dir); err != nil { // of a node that had the name before
		return nil, err
	}
	if err := p.prepareNode(name, keyIDs, identityFirst); err != nil {
		return nil, err
	}
	container, err := p.makeContainer(name)
	if err != nil {
		return nil, err
	}
	if err := join(ctx, p.container(donor.Name), container, p.endpoint(donor)); err != nil {
		return nil, fmt.Errorf("join %s: %w", name, err)
	}
	if err := joined(ctx); err != nil {
		return nil, err
	}
	p.mu.Lock()
	p.containers[name] = container
	p.mu.Unlock()
	if err := p.lb.change(ctx, func(members []string) []string { return append(members, container) }); err != nil {
		return nil, err
	}
	return p.wireNode(ctx, name, keyIDs)
}

// donor is a node of which a new one gets its certificates.
func (p *plane) donor() (*live.Node, error) {
	for _, n := range p.nodes.List() {
		if n.Server.Status().Phase == live.Running {
			return n, nil
		}
	}
	return nil, errors.New("no API server runs that a new node could join")
}

// endpoint is the control plane's, as every node's container can reach it.
func (p *plane) endpoint(donor *live.Node) string {
	if p.lb.ip == "" {
		return p.container(donor.Name) + ":" + portAPIServer
	}
	return p.lb.container + ":" + portAPIServer
}

// makeContainer lets kind make the container of a node, as a cluster of its own that is not set up: so it has whatever kind
// gives to nodes on this machine.
func (p *plane) makeContainer(name string) (string, error) {
	p.mu.Lock()
	own := fmt.Sprintf("%s-%d", p.cluster, len(p.later)+1)
	p.later = append(p.later, own)
	p.mu.Unlock()
	err := p.provider.Create(own,
		cluster.CreateWithV1Alpha4Config(config(own, p.layout, []string{name})), cluster.CreateWithNodeImage(p.nodeImage),
		cluster.CreateWithKubeconfigPath(filepath.Join(p.layout.dir, "kubeconfig-"+own)), cluster.CreateWithRetain(true),
		cluster.CreateWithStopBeforeSettingUpKubernetes(true),
		cluster.CreateWithDisplayUsage(false), cluster.CreateWithDisplaySalutation(false))
	return containersOf(own, 1)[0], err
}

// shared are the certificates and keys that all control-plane nodes of a cluster have in common.
func shared() []string {
	return strings.Fields("pki/ca.crt pki/ca.key pki/front-proxy-ca.crt pki/front-proxy-ca.key pki/sa.pub pki/sa.key pki/etcd/ca.crt pki/etcd/ca.key")
}

// join copies the certificates and runs kubeadm.
func join(ctx context.Context, donor, container, endpoint string) error {
	for _, file := range shared() {
		path := "/etc/kubernetes/" + file
		text, err := inside(ctx, donor, nil, "cat", path)
		if err != nil {
			return err
		}
		write := "umask 077; mkdir -p $(dirname " + path + ") && cat > " + path
		if _, err := inside(ctx, container, bytes.NewReader([]byte(text+"\n")), "sh", "-c", write); err != nil {
			return err
		}
	}
	own, err := inside(ctx, container, nil, "cat", "/kind/kubeadm.conf")
	if err != nil {
		return err
	}
	text, err := joinConfiguration([]byte(own), endpoint)
	if err != nil {
		return err
	}
	const file = "/kind/join.conf"
	if _, err := inside(ctx, container, bytes.NewReader(text), "sh", "-c", "cat > "+file); err != nil {
		return err
	}
	// The preflight checks object to what kind's nodes are.
	_, err = inside(ctx, container, nil, "kubeadm", "join", "--config", file, "--skip-phases=preflight")
	return err
}

// Isolate implements live.Plane.
func (p *plane) Isolate(ctx context.Context, n *live.Node) error {
	gone := p.container(n.Name)
	return p.lb.change(ctx, func(members []string) []string {
		var left []string
		for _, m := range members {
			if m != gone {
				left = append(left, m)
			}
		}
		return left
	})
}

// RemoveNode implements live.Plane. Its etcd member leaves first: without that, one of two could not be removed any more.
func (p *plane) RemoveNode(ctx context.Context, n *live.Node) error {
	container := p.container(n.Name)
	p.nodes.Remove(n.Name)
	defer n.Close()
	if err := p.removeMember(ctx, n.Name); err != nil {
		return err
	}
	if _, err := docker(ctx, "rm", "--force", "--volumes", container); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ledger.forget(n.Name)
	delete(p.containers, n.Name)
	delete(p.members, n.Name)
	delete(p.plugins, n.Name)
	return nil
}
