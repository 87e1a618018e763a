package objects

import (
	"cmp"
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kmsharness/kmsharness/aggregator/core"
	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/cluster"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/operator/encryption"
	"github.com/kmsharness/kmsharness/operator/revision"
)

// Reset makes a control plane as good as new for a scenario, one API server after another. restore, one of each, gives the nodes their plugins, without
// faults, and API servers that use them.
func Reset(ctx context.Context, p *cluster.ControlPlane, s *scenario.Scenario, restore ...func(context.Context) error) error {
	for i, a := range p.APIServers {
		name := s.Operator
		if a.Name != "" {
			name = scenario.OperatorOf(a.Name)
		}
		op, err := cluster.OperatorNamed(name)
		if err == nil {
			err = restore[i](ctx)
		}
		if err == nil {
			err = a.Profile.Become(ctx, s.Topology.Profile, a.Nodes)
		}
		if err == nil {
			err = installManifests(ctx, p, name)
		}
		switch {
		case err != nil:
		case a.Name == "":
			err = resetPlane(ctx, p, op)
		default:
			err = resetAPIServer(ctx, a, p, op)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", cmp.Or(a.Name, history.KubeAPIServer), err)
		}
	}
	return nil
}

// resetPlane makes everything new that a system under test reads or writes, and shows that every API server is ready and
// encrypts. The manifests are there; faults are the backend's to end before. An API server that was restarted with its
// plugins up is as good as a new one; one that still waits for a plugin (gRPC's back-off grows with the outage) is not ready,
// and fails the proof.
func resetPlane(ctx context.Context, p *cluster.ControlPlane, op cluster.Operator) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return resetObjects(ctx, p, op) })
	for _, n := range p.APIServers[0].Nodes.List() {
		group.Go(func() error { return prove(ctx, n, p.APIServers[0].Encrypted) })
		group.Go(func() error { return proveAdmission(ctx, p, n, op) })
	}
	return group.Wait()
}

// resetObjects recreates everything that a system under test reads or writes.
func resetObjects(ctx context.Context, p *cluster.ControlPlane, op cluster.Operator) error {
	c, err := p.APIServers[0].Nodes.Admin()
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return resetOperator(ctx, c, op, p.Traits.Streaming) })
	group.Go(func() error {
		if err := c.Remove(ctx, revision.Configurations(), "", core.OperatorObject); err != nil {
			return err
		}
		if p.CRDs == history.CRDsGateOff { // where an operator begins with clear text
			return ConfigureEncryption(ctx, c, string(encryption.Identity))
		}
		return ConfigureEncryption(ctx, c, string(encryption.KMS))
	})
	group.Go(func() error { return RemoveData(ctx, c) })
	group.Go(func() error { return SetRules(ctx, c, p.Traits.Manifests(op.Name), nil) }) // a scenario that was interrupted has not given them back
	for _, n := range p.APIServers[0].Nodes.List() {
		group.Go(func() (err error) {
			n.Since, err = NodeSince(ctx, c, n.Name, p.Traits.RealNodes)
			return err
		})
	}
	return group.Wait()
}

// resetOperator recreates the operator's CR and its ClusterOperator, and, where reporters stream, its EncryptionHealth.
func resetOperator(ctx context.Context, c *cluster.Client, op cluster.Operator, streaming bool) error {
	group, ctx := errgroup.WithContext(ctx)
	if streaming {
		group.Go(func() error {
			_, err := c.Recreate(ctx, cluster.HealthObjects(), cluster.NewObject(contract.HealthGroup+"/"+contract.HealthVersion, contract.HealthKind, op.Name, cluster.Object{"spec": cluster.Object{}}))
			return err
		})
	}
	group.Go(func() error {
		spec := cluster.Object{"spec": cluster.Object{"managementState": "Managed"}}
		_, err := c.Recreate(ctx, op.Resource, cluster.NewObject("operator.openshift.io/v1", op.Kind, core.OperatorObject, spec))
		return err
	})
	group.Go(func() error {
		_, err := c.Recreate(ctx, cluster.ClusterOperators(), cluster.NewObject("config.openshift.io/v1", "ClusterOperator", op.ClusterOperator, cluster.Object{"spec": cluster.Object{}}))
		return err
	})
	return group.Wait()
}

// Purge deletes what a scenario wrote, while the API servers still have the keys that it was written with. An object
// that cannot be decrypted cannot be deleted through the API, and breaks every list of its resource.
func Purge(ctx context.Context, p *cluster.ControlPlane) error {
	removing, cancel := context.WithTimeout(ctx, cluster.RequestTimeout)
	defer cancel()
	c, err := p.APIServers[0].Nodes.Admin()
	if err == nil {
		err = RemoveData(removing, c)
	}
	for _, f := range p.APIServers[1:] {
		if err == nil {
			err = PurgeOne(ctx, f)
		}
	}
	return err
}

// resetAPIServer is that of an aggregated API server, after kube-apiserver's: the objects of its operator are new, its data are gone, and
// every one of it is ready, and encrypts what comes through the aggregation layer of the kube-apiserver of its node.
func resetAPIServer(ctx context.Context, f cluster.APIServer, p *cluster.ControlPlane, op cluster.Operator) error {
	c, err := p.APIServers[0].Nodes.Admin()
	if err != nil {
		return err
	}
	if err := resetOperator(ctx, c, op, p.Traits.Streaming); err != nil {
		return err
	}
	all, ctx := errgroup.WithContext(ctx)
	for _, n := range p.APIServers[0].Nodes.List() {
		all.Go(func() error { return proveAdmission(ctx, p, n, op) })
	}
	for _, n := range f.Nodes.List() {
		n.Since = p.APIServers[0].Nodes.Get(n.Name).Since
		all.Go(func() error {
			if err := proveAggregated(ctx, n, f.Encrypted); err != nil {
				return fmt.Errorf("node %s: %w", n.Name, err)
			}
			return nil
		})
	}
	if err := all.Wait(); err != nil {
		return err
	}
	return PurgeOne(context.WithoutCancel(ctx), f)
}

// PurgeOne deletes the data of scenarios of an aggregated API server.
func PurgeOne(ctx context.Context, f cluster.APIServer) error {
	ctx, cancel := context.WithTimeout(ctx, cluster.RequestTimeout)
	defer cancel()
	c, err := f.Nodes.Admin()
	if err != nil {
		return err
	}
	options := metav1.ListOptions{LabelSelector: cluster.DataLabel}
	err = c.Resource(f.Encrypted.Resource).Namespace(cluster.DataNamespace).DeleteCollection(ctx, metav1.DeleteOptions{}, options)
	if err != nil {
		return fmt.Errorf("delete the data of %s: %w", f.Name, err)
	}
	return nil
}
