package live

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kmsharness/kmsharness/operator/revision"
)

// clearOperators takes back what operators made, while their keys are there to delete with, so that a reset can make the plane as good as
// new. The plugins go last: those of the next scenario have other keys in the remote KMS, also under the same keyIDs.
func (op *operatedParts) clearOperators(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, StartTimeout)
	defer cancel()
	err := op.eachOperated(func(f *Environment) error {
		return f.encrypting.eachNode(func(n *Node) error { return n.Server.Start(ctx) }) // the steps may have left it away
	})
	if err != nil {
		return err
	}
	err = op.e.data.persist(ctx, func(ctx context.Context, c *Client) error {
		return errors.Join(c.removeOperated(ctx), c.removeAll(ctx))
	})
	if err != nil {
		return fmt.Errorf("take back what the operator made: %w", err)
	}
	for _, f := range aggregatedOf(op.e.controlPlane) {
		if err := PurgeAggregated(ctx, f); err != nil {
			return err
		}
	}
	err = op.eachOperated(func(f *Environment) error {
		return f.encrypting.eachNode(func(n *Node) error {
			return errors.Join(n.Reporter().Stop(ctx), n.DropPlugins(ctx, nil))
		})
	})
	op.e.controlPlane.KMS().Forget()
	return err
}

// removeOperated deletes keys, revisions and credentials.
func (c *Client) removeOperated(ctx context.Context) error {
	list := metav1.ListOptions{LabelSelector: revision.ComponentLabel}
	for _, r := range []schema.GroupVersionResource{secretObjects(), configMapObjects()} {
		if err := c.Resource(r).Namespace(revision.Namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, list); err != nil {
			return fmt.Errorf("delete %s in %s: %w", r.Resource, revision.Namespace, err)
		}
	}
	return c.remove(ctx, secretObjects(), credentialNamespace, credentialSecret)
}
