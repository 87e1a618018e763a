package controlplane

import (
	"context"
	"errors"
	"fmt"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/e2e-framework/klient/k8s"
	"sigs.k8s.io/e2e-framework/klient/k8s/resources"
	"sigs.k8s.io/e2e-framework/klient/wait"
)

// installer is the field manager of Install.
const installer = "kmsharness"

var crdGroupKind = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}

// Install applies objects as administrator (Server-Side Apply, force) through the first of some API servers:
// CustomResourceDefinitions first, then the others in their order. It returns when all of these API servers serve the new
// resources. ctx bounds it.
func Install(ctx context.Context, servers []*rest.Config, objects ...*unstructured.Unstructured) error {
	if len(servers) == 0 {
		return errors.New("install manifests: no API server runs")
	}
	crds, others := split(objects)
	clients := make([]*resources.Resources, len(servers))
	for i, config := range servers {
		var err error
		if clients[i], err = resources.New(config); err != nil {
			return fmt.Errorf("install manifests: %w", err)
		}
	}
	if err := apply(ctx, clients[0], crds); err != nil {
		return err
	}
	for i, client := range clients {
		if err := waitServed(ctx, client, crds); err != nil {
			return fmt.Errorf("API server %s: %w", servers[i].Host, err)
		}
	}
	return apply(ctx, clients[0], others)
}

func split(objects []*unstructured.Unstructured) (crds, others []*unstructured.Unstructured) {
	for _, o := range objects {
		if o.GroupVersionKind().GroupKind() == crdGroupKind {
			crds = append(crds, o)
		} else {
			others = append(others, o)
		}
	}
	return crds, others
}

func apply(ctx context.Context, client *resources.Resources, objects []*unstructured.Unstructured) error {
	force := func(o *metav1.PatchOptions) { o.FieldManager, o.Force = installer, ptr.To(true) }
	for _, o := range objects {
		text, err := o.MarshalJSON()
		if err == nil { // the answer takes the place of what is sent
			err = client.Patch(ctx, o.DeepCopy(), k8s.Patch{PatchType: types.ApplyPatchType, Data: text}, force)
		}
		if err != nil {
			return fmt.Errorf("install %s %s: %w", o.GetKind(), o.GetName(), err)
		}
	}
	return nil
}

// servePoll is small against the 100 to 200 ms that it takes until a new resource is served.
const servePoll = 20 * time.Millisecond

// waitServed returns when an API server lists every served version of the resources.
func waitServed(ctx context.Context, client *resources.Resources, crds []*unstructured.Unstructured) error {
	for _, crd := range crds {
		var definition apiextensionsv1.CustomResourceDefinition
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(crd.Object, &definition); err != nil {
			return fmt.Errorf("install %s %s: %w", crd.GetKind(), crd.GetName(), err)
		}
		for _, v := range definition.Spec.Versions {
			if !v.Served {
				continue
			}
			kind := schema.GroupVersionKind{Group: definition.Spec.Group, Version: v.Name, Kind: definition.Spec.Names.Kind}
			if err := waitListed(ctx, client, kind); err != nil {
				return fmt.Errorf("wait until %s is served: %w", kind, err)
			}
		}
	}
	return nil
}

func waitListed(ctx context.Context, client *resources.Resources, kind schema.GroupVersionKind) error {
	var last error
	err := wait.For(func(ctx context.Context) (bool, error) {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind)
		last = client.List(ctx, list, func(o *metav1.ListOptions) { o.Limit = 1 })
		if meta.IsNoMatchError(last) || apierrors.IsNotFound(last) || apierrors.IsServiceUnavailable(last) || apierrors.IsTooManyRequests(last) {
			return false, nil
		}
		return true, last
	}, wait.WithContext(ctx), wait.WithTimeout(0), wait.WithInterval(servePoll), wait.WithImmediate())
	if err != nil && !errors.Is(err, last) {
		return errors.Join(err, last)
	}
	return err
}
