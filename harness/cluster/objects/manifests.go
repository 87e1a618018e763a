package objects

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kmsharness/kmsharness/ci/crds"
	"github.com/kmsharness/kmsharness/ci/manifests"
	"github.com/kmsharness/kmsharness/harness/cluster"
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

// installManifests installs what an operator needs, once.
func installManifests(ctx context.Context, p *cluster.ControlPlane, operator string) error {
	flag := cluster.OperatorFlag(operator)
	if p.Installed[flag] {
		return nil
	}
	objects, err := manifestsOf(p.Traits.Manifests(operator), p.CRDs)
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
