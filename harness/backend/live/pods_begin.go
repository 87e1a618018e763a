package live

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

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
func (p *pods) configuredOn(ctx context.Context, node string, b beginning) (Encryption, error) {
	configured := Encryption{Providers: encryption.List{encryption.Clear()}, File: b.File, Revision: b.pod}
	for _, g := range b.Plugins {
		called := revision.SocketName(g.KeyID)
		if err := p.logIns.introduce(ctx, node, called, g.Config); err != nil {
			return Encryption{}, err
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
	err = op.e.data.persist(ctx, func(ctx context.Context, c *Client) error {
		seen, err := c.seen(ctx, op.revised())
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

func (c *Client) seen(ctx context.Context, of revision.Component) (lifecycle.Seen, error) {
	s := lifecycle.NewSeen()
	err := each(ctx, c, secretObjects(), of, func(one *corev1.Secret) error { return s.Add(lifecycle.ReadSecret(one)) })
	if err != nil {
		return s, err
	}
	return s, each(ctx, c, configMapObjects(), of, func(one *corev1.ConfigMap) error { return s.Add(lifecycle.ReadConfigMap(one)) })
}

// each does something with every object of a kind that an operator has made.
func each[T any](ctx context.Context, c *Client, r schema.GroupVersionResource, of revision.Component, do func(*T) error) error {
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
