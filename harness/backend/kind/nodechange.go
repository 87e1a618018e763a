package kind

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/kmsharness/kmsharness/harness/cluster"
	"github.com/kmsharness/kmsharness/operator/sidecar"
)

// joinTimeout bounds kubeadm join: half a minute on an idle machine.
const joinTimeout = 4 * time.Minute

// membership changes which nodes the cluster has.
type membership struct{ *controlPlane }

// AddNode implements cluster.Topology: kind makes the container, kubeadm joins it, and it is wired like the others.
func (p membership) AddNode(ctx context.Context, name string, told cluster.Encryption, joined func(context.Context) error) (*cluster.Node, error) {
	ctx, cancel := context.WithTimeout(ctx, joinTimeout+injectTimeout)
	defer cancel()
	donor, err := p.donor(name)
	if err != nil {
		return nil, err
	}
	if err := os.RemoveAll(p.layout.node(name).dir); err != nil { // of a node that had the name before
		return nil, err
	}
	if err := p.layout.node(name).prepare(told); err != nil {
		return nil, err
	}
	endpoint := p.container(donor.Name) // of the control plane, as every node's container can reach it
	if p.lb.ip != "" {
		endpoint = p.lb.container
	}
	made, err := p.clusters.join(ctx, name, endpoint)
	if err != nil {
		return nil, err
	}
	p.change(name, func(m *machine) { m.container = made })
	n, err := p.readyNode(ctx, name, told.PluginIDs())
	if err != nil {
		return nil, err
	}
	if told.Revision > 0 {
		serverOf(n).revision.Store(int64(told.Revision))
	}
	if err := joinCluster(ctx, made, p.container(donor.Name), p.spec(n)); err != nil {
		return nil, fmt.Errorf("join %s: %w", name, err)
	}
	if err := joined(ctx); err != nil {
		return nil, err
	}
	if p.shape.Advertises {
		if err := startFront(ctx, made); err != nil {
			return nil, err
		}
	}
	if err := p.lb.lead(ctx, append(p.serving(), made)); err != nil {
		return nil, err
	}
	if err := serverOf(n).started(ctx); err != nil {
		return nil, err
	}
	if err := p.aggregators.awaitStreams(ctx, made); err != nil {
		return nil, err
	}
	p.nodes.Add(n)
	return n, nil
}

// joinCluster lets kubeadm join the node to the cluster of a donor, as kind has configured it. The manifest of its API server is changed between the
// phase that writes it and the one that starts the kubelet: so the pod starts once, with its sidecars.
func joinCluster(ctx context.Context, c, donor container, spec sidecar.Spec) error {
	if err := copyShared(ctx, donor, c); err != nil {
		return err
	}
	const file = "/kind/kubeadm.conf"
	if _, err := c.exec(ctx, "kubeadm", "join", "phase", "control-plane-prepare", "all", "--config", file); err != nil {
		return err
	}
	if err := injectManifest(ctx, c, manifest, spec); err != nil {
		return err
	}
	// The preflight checks object to what kind's nodes are; and the last wait, which this harness does itself, to an API server
	// below another program.
	_, err := c.exec(ctx, "kubeadm", "join", "--config", file, "--skip-phases=preflight,control-plane-prepare,wait-control-plane")
	return err
}

// copyShared copies from one node to another the certificates and keys that all control-plane nodes of a cluster have in common.
func copyShared(ctx context.Context, from, to container) error {
	const files = "pki/ca.crt pki/ca.key pki/front-proxy-ca.crt pki/front-proxy-ca.key pki/sa.pub pki/sa.key pki/etcd/ca.crt pki/etcd/ca.key"
	text, err := from.exec(ctx, "sh", "-c", "tar -C /etc/kubernetes -c "+files+" | base64")
	if err != nil {
		return err
	}
	return to.feed(ctx, strings.NewReader(text), "sh", "-c", "umask 077; mkdir -p /etc/kubernetes && base64 -d | tar -C /etc/kubernetes -x")
}

// Isolate implements cluster.Topology: out of the load balancer, and drained.
func (p membership) Isolate(ctx context.Context, n *cluster.Node) error {
	p.change(n.Name, func(m *machine) { m.leaving = true })
	if err := p.lb.lead(ctx, p.serving()); err != nil {
		return err
	}
	return p.drain(ctx, n)
}

// serving are the containers of the nodes that the load balancer leads to.
func (p membership) serving() (all []container) {
	for _, n := range p.nodes.List() {
		if !p.leaves(n.Name) {
			all = append(all, p.container(n.Name))
		}
	}
	return all
}

// drain takes the pods off a node as an administrator does, through another node's API server, and gives programs of Deployments
// that were there their new pod. A node that does not answer any more cannot be drained, and is removed all the same.
func (p membership) drain(ctx context.Context, n *cluster.Node) error {
	through, err := p.donor(n.Name)
	if err != nil {
		return err
	}
	moving := replicasOn(n.Name, p.deployments())
	_, err = p.container(through.Name).kubectl(ctx, "drain", n.Name,
		"--ignore-daemonsets", "--delete-emptydir-data", "--force", "--grace-period=2", "--timeout=30s")
	if err != nil && n.Server.Status().Phase == cluster.Running {
		return fmt.Errorf("drain %s: %w", n.Name, err)
	}
	if len(moving) == 0 {
		return nil
	}
	if err := p.assign(ctx, through.URL); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, r := range moving {
		group.Go(func() error { return r.Start(ctx) })
	}
	return group.Wait()
}

// RemoveNode implements cluster.Topology. Its etcd member leaves first: without that, one of two could not be removed any more.
func (p membership) RemoveNode(ctx context.Context, n *cluster.Node) error {
	p.nodes.Remove(n.Name)
	defer n.Close()
	if err := p.etcdMembers.remove(ctx, n.Name); err != nil {
		return err
	}
	if err := p.container(n.Name).remove(ctx); err != nil {
		return err
	}
	p.units.forget(func(s *unitState) bool { return s.pod() == serverOf(n).dir })
	p.machines.forget(n.Name)
	return nil
}

// donor is a node whose API server runs, other than the one that is meant: a new node gets its certificates from it, and a node
// that goes is taken out through it.
func (p *controlPlane) donor(except string) (*cluster.Node, error) {
	for _, n := range p.nodes.List() {
		if n.Name != except && !p.leaves(n.Name) && n.Server.Status().Phase == cluster.Running {
			return n, nil
		}
	}
	return nil, errors.New("no API server of another node runs")
}

// takeOut removes nodes.
func (p membership) takeOut(ctx context.Context, names []string) error {
	for _, name := range names {
		n := p.nodes.Get(name)
		if !p.leaves(name) {
			if err := p.Isolate(ctx, n); err != nil {
				return err
			}
		}
		through, err := p.donor(name)
		if err != nil {
			return err
		}
		if err := through.Admin.RemoveNodeObject(ctx, name); err != nil { // it may be gone
			return err
		}
		if err := p.RemoveNode(ctx, n); err != nil {
			return fmt.Errorf("remove %s: %w", name, err)
		}
	}
	return nil
}
