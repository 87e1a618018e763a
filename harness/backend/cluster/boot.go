package cluster

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/e2e-framework/pkg/envfuncs"

	"github.com/kmsharness/kmsharness/ci/crds"
	"github.com/kmsharness/kmsharness/harness/agent"
	"github.com/kmsharness/kmsharness/harness/backend/live"
	"github.com/kmsharness/kmsharness/harness/controlplane"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

// boot makes the objects of a run that scenarios share: the namespace, the CRDs, the agents' account, and the hub.
func (p *controlPlane) boot(ctx context.Context, s *scenario.Scenario) error {
	ctx, cancel := context.WithTimeout(ctx, bootTimeout)
	defer cancel()
	for _, step := range []func(context.Context) error{
		p.makeNamespace, func(ctx context.Context) error { return p.install(ctx, s.Operator) }, p.makeAccount, p.makeHub,
	} {
		if err := step(ctx); err != nil {
			return fmt.Errorf("deploy run %s: %w", p.run.name, err)
		}
	}
	return nil
}

// check refuses a cluster whose objects the run would meet.
func (p *controlPlane) check(ctx context.Context) error {
	client, err := discovery.NewDiscoveryClientForConfig(p.access.config)
	if err != nil {
		return err
	}
	if _, err := client.ServerResourcesForGroupVersion("admissionregistration.k8s.io/v1"); err != nil {
		return fmt.Errorf("cluster %s: %w", p.access.config.Host, err)
	}
	list, err := crds.WithKMS(crds.Variant(p.shape))
	if err != nil {
		return err
	}
	extensions, err := dynamic.NewForConfig(p.access.config)
	if err != nil {
		return err
	}
	for _, crd := range list {
		found, err := extensions.Resource(apiextensions.SchemeGroupVersion.WithResource("customresourcedefinitions")).Get(ctx, crd.Name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			return fmt.Errorf("read CRD %s: %w", crd.Name, err)
		default:
			return errHas(crd.Name, found.GetLabels()[labelRun])
		}
	}
	return nil
}

// errHas says that a cluster has a CRD, which another run may have made.
func errHas(crd, by string) error {
	if by != "" {
		return fmt.Errorf("run %s of kmsharness is in the cluster: wait until it has ended, or remove it with kmsharness down --run %s", by, by)
	}
	return fmt.Errorf("the cluster has CRD %s, with objects that are not this run's: expected a cluster without OpenShift's CRDs, such as one of kind", crd)
}

// makeNamespace is the first object: by it a run that is killed can be found.
func (p *controlPlane) makeNamespace(ctx context.Context) error {
	p.mu.Lock()
	p.begun = true
	p.mu.Unlock()
	_, err := envfuncs.CreateNamespace(p.run.name, envfuncs.WithLabels(p.run.labels()), envfuncs.WithAnnotations(map[string]string{annotationHost: host()}))(ctx, p.access.env)
	return err
}

// install installs what an operator needs, once.
func (p *controlPlane) install(ctx context.Context, operator string) error {
	if p.installed[live.OperatorFlag(operator)] {
		return nil
	}
	objects, err := p.Traits().Manifests(operator, p.shape)
	if err != nil {
		return err
	}
	for _, o := range objects {
		labels := o.GetLabels()
		if labels == nil {
			labels = map[string]string{}
		}
		labels[labelRun] = p.run.name
		o.SetLabels(labels)
	}
	if err := controlplane.Install(ctx, []*rest.Config{p.access.config}, objects...); err != nil {
		return fmt.Errorf("manifests: %w", err)
	}
	p.installed[live.OperatorFlag(operator)] = true
	return nil
}

// makeAccount makes what the agents need.
func (p *controlPlane) makeAccount(ctx context.Context) error {
	cert, key, err := p.Serving("kmsharness-agent")
	if err != nil {
		return err
	}
	p.token = rand.Text()
	secret := map[string][]byte{agent.SecretCA: p.Bundle(), agent.SecretCert: cert, agent.SecretKey: key, agent.SecretToken: []byte(p.token)}
	for _, o := range p.run.agentObjects(secret) {
		if err := p.access.resources(p.run.name).Create(ctx, o); err != nil {
			return fmt.Errorf("create %T %s: %w", o, o.GetName(), err)
		}
	}
	return nil
}

// allow lets the agents pass on requests of the reporters of nodes.
func (p *controlPlane) allow(ctx context.Context, nodes []string) error {
	if err := p.access.resources("").Update(ctx, p.run.impersonation(nodes)); err != nil {
		return fmt.Errorf("role of the agents: %w", err)
	}
	return nil
}

// makeHub makes the pod of the aggregators and the remote KMS, and starts the latter.
func (p *controlPlane) makeHub(ctx context.Context) (err error) {
	on, err := p.placeOn(ctx, 1)
	if err != nil {
		return err
	}
	if err := p.access.resources(p.run.name).Create(ctx, p.run.hubPod(on[0], p.images)); err != nil {
		return fmt.Errorf("create pod %s: %w", hub, err)
	}
	if p.hub, err = p.awaitPod(ctx, hub); err != nil {
		return err
	}
	for i := range maxAggregators {
		u, err := p.newUnit(p.hub, volumeAggregator, unitAggregator(i+1))
		if err != nil {
			return err
		}
		p.aggregators = append(p.aggregators, u)
	}
	return p.startKMS(ctx)
}

// placeOn gives nodes of a scenario nodes of the cluster.
func (p *controlPlane) placeOn(ctx context.Context, count int) ([]string, error) {
	var nodes corev1.NodeList
	if err := p.access.resources("").List(ctx, &nodes); err != nil {
		return nil, fmt.Errorf("list the nodes of the cluster: %w", err)
	}
	return place(nodes.Items, count)
}

func (p *controlPlane) startKMS(ctx context.Context) error {
	u, err := p.newUnit(p.hub, volumeKMS, unitKMS)
	if err != nil {
		return err
	}
	socket := p.hub.file("kms.sock")
	if err := p.hub.lendSocket(socket, "tcp:"+portKMS); err != nil {
		return err
	}
	const journal, state = "journal.jsonl", "state.json" // kms.json is the unit's command
	if p.kms, err = live.NewRemoteKMS(socket, p.hub.file(volumeKMS+"/"+journal)); err != nil {
		return err
	}
	u.is.Store(&p.kms.Identity)
	p.kms.Unit = &program{unit: u, ready: p.kms.Healthy, command: func(context.Context) ([]string, error) {
		return []string{inImage(live.PluginProgram), "remote", "--listen=tcp://:" + portKMS, "--journal=" + inPod(volumeKMS, journal), "--state=" + inPod(volumeKMS, state)}, nil
	}}
	if err := p.kms.Start(ctx); err != nil {
		return fmt.Errorf("start the remote KMS: %w", err)
	}
	return nil
}

// close removes everything that was made, and reports what could not be removed.
func (p *controlPlane) Close(ctx context.Context) error {
	p.mu.Lock()
	begun := p.begun
	p.mu.Unlock()
	for _, one := range p.pods() {
		one.disconnect()
	}
	for _, n := range p.nodes.List() {
		n.Close()
	}
	if p.kms != nil {
		p.kms.Close()
	}
	p.stop()
	var err error
	if begun {
		err = p.access.remove(ctx, p.run)
	}
	return errors.Join(err, p.requests.close(), os.RemoveAll(p.dir))
}
