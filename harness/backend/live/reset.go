package live

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/kmsharness/kmsharness/ci/crds"
	"github.com/kmsharness/kmsharness/ci/manifests"
	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/controlplane"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/internal/poll"
	"github.com/kmsharness/kmsharness/operator/encryption"
	"github.com/kmsharness/kmsharness/operator/revision"
)

// manifestsOf returns what a cluster needs for the health of an operator: the CRDs in a variant, and the permissions of
// reporters and aggregator. OpenShift's CRDs have the field of typed reports in some feature sets only, hence the
// variant. They are the caller's.
func manifestsOf(installed manifests.Options, variant string) ([]*unstructured.Unstructured, error) {
	read, _ := manifestsRead.LoadOrStore(manifestsKey{installed, variant}, sync.OnceValues(func() ([]*unstructured.Unstructured, error) {
		return readManifests(installed, variant)
	}))
	list, err := read.(func() ([]*unstructured.Unstructured, error))()
	out := make([]*unstructured.Unstructured, len(list))
	for i, o := range list {
		out[i] = o.DeepCopy()
	}
	return out, err
}

// manifestsRead are those of each key that was asked for. They are read once per process, because each scenario asks.
var manifestsRead sync.Map

type manifestsKey struct {
	installed manifests.Options
	variant   string
}

func readManifests(installed manifests.Options, variant string) ([]*unstructured.Unstructured, error) {
	list, err := crds.WithKMS(crds.Variant(variant))
	if err != nil {
		return nil, err
	}
	var objects []*unstructured.Unstructured
	for _, crd := range list {
		u, err := runtime.DefaultUnstructuredConverter.ToUnstructured(crd)
		if err != nil {
			return nil, fmt.Errorf("CRD %s: %w", crd.Name, err)
		}
		delete(u, "status") // of the copy; the API server has its own
		o := &unstructured.Unstructured{Object: u}
		o.SetAPIVersion("apiextensions.k8s.io/v1")
		o.SetKind("CustomResourceDefinition")
		objects = append(objects, o)
	}
	more, err := manifests.Objects(installed)
	if err != nil {
		return nil, err
	}
	return append(objects, more...), nil
}

// Install installs manifests through the API servers of nodes that run.
func (t Traits) Install(ctx context.Context, c Credentials, nodes *Nodes, objects ...*unstructured.Unstructured) error {
	if t.Manifest != nil {
		for _, o := range objects {
			t.Manifest(o)
		}
	}
	var servers []*rest.Config
	for _, n := range nodes.List() {
		if !n.Server.Status().Running() {
			continue
		}
		config, err := adminConfig(c, n.URL)
		if err != nil {
			return err
		}
		servers = append(servers, config)
	}
	return controlplane.Install(ctx, servers, objects...)
}

// install installs what an operator needs, once.
func (p *ControlPlane) install(ctx context.Context, operator string) error {
	flag := OperatorFlag(operator)
	if p.Installed[flag] {
		return nil
	}
	objects, err := manifestsOf(p.Traits.manifests(operator), p.CRDs)
	if err != nil {
		return err
	}
	if len(p.Installed) > 0 { // the CRDs are there
		objects = slices.DeleteFunc(objects, func(o *unstructured.Unstructured) bool { return o.GetKind() == "CustomResourceDefinition" })
	}
	if err := p.Traits.Install(ctx, p.Credentials, p.APIServers[0].Nodes, objects...); err != nil {
		return fmt.Errorf("manifests: %w", err)
	}
	p.Installed[flag] = true
	return nil
}

// Reset makes a control plane as good as new for a scenario, one API server after another. restore, one of each, gives the nodes their plugins, without
// faults, and API servers that use them.
func Reset(ctx context.Context, p *ControlPlane, s *scenario.Scenario, restore ...func(context.Context) error) error {
	for i, a := range p.APIServers {
		name := s.Operator
		if a.Name != "" {
			name = scenario.OperatorOf(a.Name)
		}
		op, err := operatorNamed(name)
		if err == nil {
			err = restore[i](ctx)
		}
		if err == nil {
			err = a.Profile.Become(ctx, s.Topology.Profile, a.Nodes)
		}
		if err == nil {
			err = p.install(ctx, name)
		}
		switch {
		case err != nil:
		case a.Name == "":
			err = p.reset(ctx, op)
		default:
			err = a.reset(ctx, p, op)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", cmp.Or(a.Name, history.KubeAPIServer), err)
		}
	}
	return nil
}

// reset makes everything new that a system under test reads or writes, and shows that every API server is ready and
// encrypts. The manifests are there; faults are the backend's to end before. An API server that was restarted with its
// plugins up is as good as a new one; one that still waits for a plugin (gRPC's back-off grows with the outage) is not ready,
// and fails the proof.
func (p *ControlPlane) reset(ctx context.Context, op operator) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return resetObjects(ctx, p, op) })
	for _, n := range p.APIServers[0].Nodes.List() {
		group.Go(func() error { return n.prove(ctx, p.APIServers[0].Encrypted) })
		group.Go(func() error { return proveAdmission(ctx, p, n, op) })
	}
	return group.Wait()
}

// proveAdmission returns when an API server keeps reporters to their own entries. It enforces an admission policy only
// some time after the policy was created, when its informers have it. Until then a scenario about security would pass
// writes that it expects to be denied. The proof is a dry run by a reporter of no node, which only the policy refuses.
// Reporters that stream may write nothing at all.
func proveAdmission(ctx context.Context, p *ControlPlane, n *Node, op operator) error {
	if p.Traits.Streaming {
		return nil
	}
	config, err := p.Credentials.RESTConfig(contract.ReporterIdentity(""), []string{contract.ReporterGroup}, n.URL)
	if err != nil {
		return fmt.Errorf("credentials of a reporter: %w", err)
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("client of a reporter: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, policyTimeout)
	defer cancel()
	status := newObject("operator.openshift.io/v1", op.Kind, cluster, object{"status": object{"conditions": []any{object{
		"type": contract.ConditionType("proof"), "status": "True", "reason": contract.ReporterConditionReason, "message": "[]", "lastTransitionTime": "2026-01-01T00:00:00Z"}}}})
	options := metav1.ApplyOptions{FieldManager: contract.FieldManager("proof"), Force: true, DryRun: []string{metav1.DryRunAll}}
	last := "no answer"
	err = wait.PollUntilContextCancel(ctx, policyPoll, true, func(ctx context.Context) (bool, error) {
		_, err := client.Resource(op.resource).ApplyStatus(ctx, cluster, status, options)
		switch {
		case err == nil:
			last = "the write was accepted"
		case ctx.Err() == nil:
			last = err.Error()
		}
		return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "ValidatingAdmissionPolicy"), nil
	})
	if err != nil {
		return fmt.Errorf("wait until the API server of %s refuses the write of a reporter of no node, by the admission policy for %s: %w; its last answer: %s", n.Name, op.resource.Resource, err, last)
	}
	return nil
}

// A new policy is enforced within a second, on a busy machine within some. policyPoll is small against that.
const (
	policyPoll    = 50 * time.Millisecond
	policyTimeout = 20 * time.Second
)

// resetObjects recreates everything that a system under test reads or writes.
func resetObjects(ctx context.Context, p *ControlPlane, op operator) error {
	c, err := p.APIServers[0].Nodes.Admin()
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return c.resetOperator(ctx, op, p.Traits.Streaming) })
	group.Go(func() error {
		if err := c.remove(ctx, revision.Configurations(), "", cluster); err != nil {
			return err
		}
		if p.CRDs == history.CRDsGateOff { // where an operator begins with clear text
			return c.configureEncryption(ctx, string(encryption.Identity))
		}
		return c.configureEncryption(ctx, string(encryption.KMS))
	})
	group.Go(func() error { return c.removeAll(ctx) })
	group.Go(func() error { return c.setRules(ctx, p.Traits.manifests(op.Name), nil) }) // a scenario that was interrupted has not given them back
	for _, n := range p.APIServers[0].Nodes.List() {
		group.Go(func() (err error) {
			n.since, err = c.nodeSince(ctx, n.Name, p.Traits.RealNodes)
			return err
		})
	}
	return group.Wait()
}

// resetOperator recreates the operator's CR and its ClusterOperator, and, where reporters stream, its EncryptionHealth.
func (c *Client) resetOperator(ctx context.Context, op operator, streaming bool) error {
	group, ctx := errgroup.WithContext(ctx)
	if streaming {
		group.Go(func() error {
			_, err := c.recreate(ctx, healthObjects(), newObject(contract.HealthGroup+"/"+contract.HealthVersion, contract.HealthKind, op.Name, object{"spec": object{}}))
			return err
		})
	}
	group.Go(func() error {
		spec := object{"spec": object{"managementState": "Managed"}}
		_, err := c.recreate(ctx, op.resource, newObject("operator.openshift.io/v1", op.Kind, cluster, spec))
		return err
	})
	group.Go(func() error {
		_, err := c.recreate(ctx, clusterOperators(), newObject("config.openshift.io/v1", "ClusterOperator", op.ClusterOperator, object{"spec": object{}}))
		return err
	})
	return group.Wait()
}

// Purge deletes what a scenario wrote, while the API servers still have the keys that it was written with. An object
// that cannot be decrypted cannot be deleted through the API, and breaks every list of its resource.
func Purge(ctx context.Context, p *ControlPlane) error {
	removing, cancel := context.WithTimeout(ctx, RequestTimeout)
	defer cancel()
	c, err := p.APIServers[0].Nodes.Admin()
	if err == nil {
		err = c.removeAll(removing)
	}
	for _, f := range p.APIServers[1:] {
		if err == nil {
			err = f.purge(ctx)
		}
	}
	return err
}

// removeAll deletes what a scenario may have left beside the objects that are recreated: leases of aggregators and
// secrets.
func (c *Client) removeAll(ctx context.Context) error {
	err := c.Resource(leaseObjects()).Namespace(manifests.Namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete leases: %w", err)
	}
	options := metav1.ListOptions{LabelSelector: dataLabel}
	for _, ns := range []string{DataNamespace, keyNamespace} {
		err := c.Resource(secretObjects()).Namespace(ns).DeleteCollection(ctx, metav1.DeleteOptions{}, options)
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("delete secrets in %s: %w", ns, err)
		}
	}
	return nil
}

// prove shows that an API server is ready, its plugins included (/readyz checks the KMS providers), and that it
// encrypts: it writes and deletes an object.
func (n *Node) prove(ctx context.Context, o Encrypted) error {
	if n.Server.Status().Phase != Running {
		return fmt.Errorf("the API server of %s does not run", n.Name)
	}
	ready, cancel := context.WithTimeout(ctx, ReadyGrace)
	defer cancel()
	if err := n.Server.Ready(ready); err != nil {
		return err
	}
	if err := n.writeProof(ctx, o); err != nil {
		return fmt.Errorf("write a %s through the API server of %s: %w", o.Kind, n.Name, err)
	}
	return nil
}

func (n *Node) writeProof(ctx context.Context, o Encrypted) error {
	name := "proof-" + n.Name
	if err := n.Admin.remove(ctx, o.Resource, DataNamespace, name); err != nil {
		return err
	}
	if err := n.Admin.put(ctx, o.Resource, o.object(name, []byte("proof")), false); err != nil {
		return err
	}
	return n.Admin.remove(ctx, o.Resource, DataNamespace, name)
}

// reset is that of an aggregated API server, after kube-apiserver's: the objects of its operator are new, its data are gone, and
// every one of it is ready, and encrypts what comes through the aggregation layer of the kube-apiserver of its node.
func (f APIServer) reset(ctx context.Context, p *ControlPlane, op operator) error {
	c, err := p.APIServers[0].Nodes.Admin()
	if err != nil {
		return err
	}
	if err := c.resetOperator(ctx, op, p.Traits.Streaming); err != nil {
		return err
	}
	all, ctx := errgroup.WithContext(ctx)
	for _, n := range p.APIServers[0].Nodes.List() {
		all.Go(func() error { return proveAdmission(ctx, p, n, op) })
	}
	for _, n := range f.Nodes.List() {
		n.since = p.APIServers[0].Nodes.Get(n.Name).since
		all.Go(func() error {
			if err := n.proveAggregated(ctx, f.Encrypted); err != nil {
				return fmt.Errorf("node %s: %w", n.Name, err)
			}
			return nil
		})
	}
	if err := all.Wait(); err != nil {
		return err
	}
	return f.purge(context.WithoutCancel(ctx))
}

// purge deletes the data of scenarios of an aggregated API server.
func (f APIServer) purge(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, RequestTimeout)
	defer cancel()
	c, err := f.Nodes.Admin()
	if err != nil {
		return err
	}
	options := metav1.ListOptions{LabelSelector: dataLabel}
	err = c.Resource(f.Encrypted.Resource).Namespace(DataNamespace).DeleteCollection(ctx, metav1.DeleteOptions{}, options)
	if err != nil {
		return fmt.Errorf("delete the data of %s: %w", f.Name, err)
	}
	return nil
}

// proveAggregated waits for the aggregation layer. A kube-apiserver that has just got an APIService answers with
// an error until its controllers have found the service available.
func (n *Node) proveAggregated(ctx context.Context, o Encrypted) error {
	ready, cancel := context.WithTimeout(ctx, ReadyGrace)
	defer cancel()
	if err := n.Server.Ready(ready); err != nil {
		return err
	}
	ctx, cancel = context.WithTimeout(ctx, StartTimeout)
	defer cancel()
	for {
		err := n.writeProof(ctx, o)
		if err == nil {
			return nil
		}
		if apierrors.IsInvalid(err) || poll.Pause(ctx, reloadPoll) != nil {
			return fmt.Errorf("write a %s through the aggregation layer: %w", o.Kind, err)
		}
	}
}
