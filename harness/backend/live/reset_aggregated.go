package live

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kmsharness/kmsharness/harness/scenario"
)

// ResetAggregated is Reset for a further API server of a plane that was reset: the objects of its operator are new, its data are gone, and
// every one of it is ready, and encrypts what comes through the aggregation layer of the kube-apiserver of its node.
func ResetAggregated(ctx context.Context, p ControlPlane, f AggregatedAPIServer) error {
	op, err := operatorNamed(scenario.OperatorOf(f.APIServer()))
	if err != nil {
		return err
	}
	c, err := p.Nodes().Admin()
	if err != nil {
		return err
	}
	if err := c.resetOperator(ctx, op, p.Traits().Streaming); err != nil {
		return fmt.Errorf("%s: %w", f.APIServer(), err)
	}
	all, ctx := errgroup.WithContext(ctx)
	for _, n := range p.Nodes().List() {
		all.Go(func() error { return proveAdmission(ctx, p, n, op) })
	}
	for _, n := range f.Nodes().List() {
		n.since = p.Nodes().Get(n.Name).since
		all.Go(func() error {
			if err := n.proveAggregated(ctx, f.Encrypted()); err != nil {
				return fmt.Errorf("%s of %s: %w", f.APIServer(), n.Name, err)
			}
			return nil
		})
	}
	if err := all.Wait(); err != nil {
		return err
	}
	return PurgeAggregated(context.WithoutCancel(ctx), f)
}

// PurgeAggregated is Purge for a further API server.
func PurgeAggregated(ctx context.Context, f AggregatedAPIServer) error {
	ctx, cancel := context.WithTimeout(ctx, RequestTimeout)
	defer cancel()
	c, err := f.Nodes().Admin()
	if err != nil {
		return err
	}
	options := metav1.ListOptions{LabelSelector: dataLabel}
	err = c.Resource(f.Encrypted().Resource).Namespace(dataNamespace).DeleteCollection(ctx, metav1.DeleteOptions{}, options)
	if err != nil {
		return fmt.Errorf("delete the data of %s: %w", f.APIServer(), err)
	}
	return nil
}

// proveAggregated waits for the aggregation layer: a kube-apiserver that has just been told of an APIService does not know it yet.
func (n *Node) proveAggregated(ctx context.Context, o Encrypted) error {
	ready, cancel := context.WithTimeout(ctx, ReadyGrace)
	defer cancel()
	if err := n.Server.Ready(ready); err != nil {
		return err
	}
	ctx, cancel = context.WithTimeout(ctx, StartTimeout)
	defer cancel()
	name := "proof-" + n.Name
	for {
		err := n.Admin.remove(ctx, o.Resource, dataNamespace, name)
		if err == nil {
			err = n.Admin.put(ctx, o.Resource, o.object(name, []byte("proof")), false)
		}
		if err == nil {
			return n.Admin.remove(ctx, o.Resource, dataNamespace, name)
		}
		if apierrors.IsInvalid(err) || pause(ctx, reloadPoll) != nil {
			return fmt.Errorf("write a %s through the aggregation layer: %w", o.Kind, err)
		}
	}
}
