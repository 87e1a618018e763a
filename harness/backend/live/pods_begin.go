package live

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kmsharness/kmsharness/harness/backend/operand"
	"github.com/kmsharness/kmsharness/harness/cluster"
	lifecycle "github.com/kmsharness/kmsharness/operator"
	"github.com/kmsharness/kmsharness/operator/encryption"
	"github.com/kmsharness/kmsharness/operator/revision"
)

// beginning is what a new pod begins with: the newest revisions, whether the operator runs or not. They are objects of
// the API, and a node that joins reads them there.
type beginning struct {
	revision int // as the operator counts
	lifecycle.Configuration
	pod int // its own revision
}

// configuredOn is that for a plane, whose remote KMS knows the plugins of a node from now on.
func (p *pods) configuredOn(ctx context.Context, node string, b beginning) (cluster.Encryption, error) {
	configured := cluster.Encryption{Providers: encryption.List{encryption.Clear()}, File: b.File, Revision: b.pod}
	for _, g := range b.Plugins {
		called := revision.SocketName(g.KeyID)
		if err := p.logIns.introduce(ctx, node, called, g.Config); err != nil {
			return cluster.Encryption{}, err
		}
		configured.Sockets = append(configured.Sockets, called)
	}
	return configured, nil
}

// readBeginning reads the newest revisions, through any API server.
func (op *operatedParts) readBeginning(ctx context.Context) (b beginning, err error) {
	if p := op.e.pods; p.underTest() {
		now := p.cluster.Installer.Current()
		return beginning{now.Number, now.Configuration, now.Number}, nil
	}
	err = op.e.persist(ctx, func(ctx context.Context, c *cluster.Client) error {
		seen, err := seenBy(ctx, c, op.revised())
		if err == nil {
			b, err = op.beginningOf(seen, 0)
		}
		return err
	})
	return b, err
}

// beginningOf is what a pod begins with that was rolled back by a number of revisions.
func (op *operatedParts) beginningOf(seen lifecycle.Seen, back int) (b beginning, err error) {
	config, plugins := op.e.opts.serve(seen.Observed, back)
	b = beginning{revision: config.Revision, Configuration: lifecycle.Configuration{Plugins: plugins.Plugins}}
	if b.revision > 0 {
		b.File, err = seen.File(config.Revision)
	}
	b.pod = op.e.pods.cluster.Installer.NumberOf(b.Configuration)
	return b, err
}

func seenBy(ctx context.Context, c *cluster.Client, of revision.Component) (lifecycle.Seen, error) {
	s := lifecycle.NewSeen()
	err := each(ctx, c, cluster.SecretObjects(), of, func(one *corev1.Secret) error { return s.Add(lifecycle.ReadSecret(one)) })
	if err != nil {
		return s, err
	}
	return s, each(ctx, c, cluster.ConfigMapObjects(), of, func(one *corev1.ConfigMap) error { return s.Add(lifecycle.ReadConfigMap(one)) })
}

// each does something with every object of a kind that an operator has made.
func each[T any](ctx context.Context, c *cluster.Client, r schema.GroupVersionResource, of revision.Component, do func(*T) error) error {
	labelled := metav1.ListOptions{LabelSelector: revision.ComponentLabel + "=" + string(of)}
	list, err := c.Resource(r).Namespace(revision.Namespace).List(ctx, labelled)
	if err != nil {
		return fmt.Errorf("list %s in %s: %w", r.Resource, revision.Namespace, err)
	}
	return list.EachListItem(func(o runtime.Object) error {
		one := new(T)
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.(*unstructured.Unstructured).Object, one); err != nil {
			return fmt.Errorf("read one of the %s in %s: %w", r.Resource, revision.Namespace, err)
		}
		return do(one)
	})
}

// join brings a node up in a cluster with an operator, with its reporter. The node counts from the beginning, before the
// content of its pod is read: otherwise the operator could agree on a key without it, and remove the one that its pod
// begins with.
func (op *operatedParts) join(ctx context.Context, name string) error {
	op.setComing(name, true)
	defer op.setComing(name, false)
	b, err := op.readBeginning(ctx)
	if err != nil {
		return fmt.Errorf("read the newest revisions: %w", err)
	}
	op.e.pods.expect(name, b)
	var n *cluster.Node
	configured, err := op.e.pods.configuredOn(ctx, name, b)
	if err == nil {
		n, err = op.e.controlPlane.Topology.AddNode(ctx, name, configured, func(ctx context.Context) error { return op.e.changes.joined(ctx, name) })
	}
	if err != nil {
		op.e.pods.leave(name)
		return err
	}
	if err := op.e.changes.meet(ctx, n, func() error { return op.e.pods.began(ctx, n, b) }); err != nil {
		return err
	}
	op.become(name)
	return op.e.pods.report(ctx, n, b.KeyIDs())
}

// setComing says that a node counts, and that nobody else sees it yet.
func (op *operatedParts) setComing(name string, coming bool) {
	op.e.mu.Lock()
	defer op.e.mu.Unlock()
	if coming {
		op.e.coming[name] = true
		return
	}
	delete(op.e.coming, name)
}

// comes are the nodes that have no pod yet: nothing can be done on them.
func (op *operatedParts) comes() map[string]operand.Node {
	op.e.mu.Lock()
	defer op.e.mu.Unlock()
	out := map[string]operand.Node{}
	for name := range op.e.coming {
		out[name] = operand.Node{Unavailable: true}
	}
	return out
}

// become makes a node that came one of those that there are.
func (op *operatedParts) become(name string) {
	op.e.mu.Lock()
	defer op.e.mu.Unlock()
	delete(op.e.joining, name)
	delete(op.e.coming, name)
}

// expect notes what the pod of a node that comes has, and so what its reporter is to report.
func (p *podStates) expect(name string, b beginning) {
	p.mu.Lock()
	defer p.mu.Unlock()
	pod := p.of(name)
	for _, g := range b.Plugins {
		pod.plugins[g.KeyID] = g.Config
	}
	pod.sockets, pod.number = b.KeyIDs(), b.pod
}

// began notes what an API server has begun with, and leaves it in the history.
func (p *pods) began(ctx context.Context, n *cluster.Node, b beginning) error {
	p.cluster.Installer.Placed(n.Name, b.Configuration)
	if b.File == nil {
		p.e.encrypting.recordConfiguredOn(n.Name)
		return nil
	}
	if err := p.send(n, operand.Revision{Number: b.revision, Configuration: b.Configuration}); err != nil {
		return err
	}
	p.askLoaded(ctx, n) // it is ready, so it answers
	return nil
}

// leave forgets the pod of a node that is gone.
func (p *podStates) leave(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.all, name)
}
