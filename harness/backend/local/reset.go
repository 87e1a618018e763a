package local

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kmsharness/kmsharness/ci/crds"
	"github.com/kmsharness/kmsharness/ci/manifests"
	"github.com/kmsharness/kmsharness/harness/controlplane"
	"github.com/kmsharness/kmsharness/harness/netfault"
	"github.com/kmsharness/kmsharness/harness/process"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

// reset makes the plane as good as new for a scenario, and shows that it is: no fault is in force, the objects that a
// system under test sees are new, and a secret can be written through every API server. An API server that was restarted
// with its plugins up is as good as a new one; one that still waits for a plugin (gRPC's back-off grows with the outage) is
// not ready, fails the proof, and the plane is given up.
func (p *plane) reset(ctx context.Context, s *scenario.Scenario) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if p.used { // a plugin may have been started with faults of its own
		if err := p.clearFaults(ctx); err != nil {
			return err
		}
	}
	p.used = true
	if err := p.install(ctx, s.Operator); err != nil {
		return err
	}
	op, err := operatorNamed(s.Operator)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return p.resetObjects(ctx, op) })
	for _, n := range p.nodeList() {
		group.Go(func() error { return n.prove(ctx) })
	}
	return group.Wait()
}

func (p *plane) clearFaults(ctx context.Context) error {
	var errs []error
	for _, l := range p.front {
		errs = append(errs, l.Set(netfault.Fault{}))
	}
	for _, n := range p.nodeList() {
		errs = append(errs, n.link.Set(netfault.Fault{}), n.server.EtcdLink().Set(netfault.Fault{}), p.lb.Set(n.name, netfault.Fault{}))
		for _, g := range n.pluginList() {
			if err := g.start(ctx); err != nil {
				errs = append(errs, err)
				continue
			}
			errs = append(errs, g.control.releaseAll(ctx), g.control.SetNoticeLag(ctx, 0))
		}
	}
	return errors.Join(append(errs, p.kms.clear(ctx))...)
}

// install installs the CRDs once, and the permissions of each operator once.
func (p *plane) install(ctx context.Context, operator string) error {
	operator = operatorFlag(operator)
	if p.installed[operator] {
		return nil
	}
	var objects []*unstructured.Unstructured
	if len(p.installed) == 0 {
		list, err := crds.List(crds.TechPreview)
		if err != nil {
			return err
		}
		for _, crd := range list {
			u, err := runtime.DefaultUnstructuredConverter.ToUnstructured(crd)
			if err != nil {
				return fmt.Errorf("CRD %s: %w", crd.Name, err)
			}
			delete(u, "status") // of the copy; the API server has its own
			o := &unstructured.Unstructured{Object: u}
			o.SetAPIVersion("apiextensions.k8s.io/v1")
			o.SetKind("CustomResourceDefinition")
			objects = append(objects, o)
		}
	}
	more, err := manifests.Objects(manifests.Options{Operator: operator})
	if err != nil {
		return err
	}
	if err := p.cp.Install(ctx, append(objects, more...)...); err != nil {
		return err
	}
	p.installed[operator] = true
	return nil
}

// resetObjects recreates everything that a system under test reads or writes.
func (p *plane) resetObjects(ctx context.Context, op operator) error {
	c, err := p.admin()
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		spec := object{"spec": object{"managementState": "Managed"}}
		_, err := c.recreate(ctx, op.resource, newObject("operator.openshift.io/v1", op.kind, cluster, spec))
		return err
	})
	group.Go(func() error {
		_, err := c.recreate(ctx, clusterOperators(), newObject("config.openshift.io/v1", "ClusterOperator", op.clusterOperator, object{"spec": object{}}))
		return err
	})
	group.Go(func() error {
		if err := c.remove(ctx, apiServerConfigs(), "", cluster); err != nil {
			return err
		}
		return c.configureEncryption(ctx, encryptionKMS)
	})
	group.Go(func() error { return c.removeAll(ctx) })
	for _, n := range p.nodeList() {
		group.Go(func() (err error) {
			n.since, err = c.createNode(ctx, n.name)
			return err
		})
	}
	return group.Wait()
}

// removeAll deletes what a scenario may have left beside the objects that are recreated: leases of aggregators and
// secrets.
func (c *client) removeAll(ctx context.Context) error {
	if err := c.Resource(leaseObjects()).Namespace(manifests.Namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete leases: %w", err)
	}
	options := metav1.ListOptions{LabelSelector: dataLabel}
	if err := c.Resource(secretObjects()).Namespace(dataNamespace).DeleteCollection(ctx, metav1.DeleteOptions{}, options); err != nil {
		return fmt.Errorf("delete secrets: %w", err)
	}
	return nil
}

// prove shows that an API server is ready, its plugins included, and that it encrypts.
func (n *node) prove(ctx context.Context) error {
	if p := n.server.Process(); p == nil || p.State() != process.Running {
		return fmt.Errorf("the API server of %s does not run", n.name)
	}
	ready, cancel := context.WithTimeout(ctx, readyGrace)
	defer cancel()
	if err := n.server.WaitReady(ready, controlplane.Ready); err != nil {
		return err
	}
	name := "proof-" + n.name
	if err := n.admin.remove(ctx, secretObjects(), dataNamespace, name); err != nil {
		return err
	}
	if _, err := n.admin.Resource(secretObjects()).Namespace(dataNamespace).Create(ctx, secret(name, []byte("proof")), metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("write a secret through the API server of %s: %w", n.name, err)
	}
	if err := n.admin.remove(ctx, secretObjects(), dataNamespace, name); err != nil {
		return fmt.Errorf("API server of %s: %w", n.name, err)
	}
	return nil
}
