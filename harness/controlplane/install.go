package controlplane

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
)

// installer is the field manager of Install.
const installer = "kmsharness"

var (
	crdResource  = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	crdGroupKind = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}
)

// Install applies objects as administrator (Server-Side Apply, force) through the first running API server:
// CustomResourceDefinitions first, then the others in their order. It returns when every running API server serves the new
// resources. ctx bounds it.
func (cp *ControlPlane) Install(ctx context.Context, objects ...*unstructured.Unstructured) error {
	var configs []*rest.Config
	for _, s := range cp.running() {
		config, err := cp.AdminConfig(s.URL())
		if err != nil {
			return err
		}
		configs = append(configs, config)
	}
	return Install(ctx, configs, objects...)
}

// Install is ControlPlane.Install for the API servers of any cluster, each with the configuration of an administrator.
func Install(ctx context.Context, servers []*rest.Config, objects ...*unstructured.Unstructured) error {
	if len(servers) == 0 {
		return errors.New("install manifests: no API server runs")
	}
	crds, others := split(objects)
	first, err := newInstallation(servers[0])
	if err != nil {
		return err
	}
	for _, crd := range crds {
		if err := first.applyCRD(ctx, crd); err != nil {
			return err
		}
	}
	for _, s := range servers {
		i, err := newInstallation(s)
		if err != nil {
			return err
		}
		if err := i.waitServed(ctx, crds); err != nil {
			return fmt.Errorf("API server %s: %w", s.Host, err)
		}
	}
	for _, o := range others {
		if err := first.apply(ctx, o); err != nil {
			return err
		}
	}
	return nil
}

func (cp *ControlPlane) running() []*APIServer {
	var all []*APIServer
	for _, s := range cp.Servers() {
		if s.Running() {
			all = append(all, s)
		}
	}
	return all
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

// installation is Install with one API server.
type installation struct {
	client dynamic.Interface
	mapper *restmapper.DeferredDiscoveryRESTMapper
}

func newInstallation(config *rest.Config) (*installation, error) {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("install manifests: %w", err)
	}
	disco, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("install manifests: %w", err)
	}
	return &installation{client: client, mapper: restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(disco))}, nil
}

func (i *installation) applyCRD(ctx context.Context, crd *unstructured.Unstructured) error {
	_, err := i.client.Resource(crdResource).Apply(ctx, crd.GetName(), crd, forced())
	return describe(crd, err)
}

func (i *installation) apply(ctx context.Context, o *unstructured.Unstructured) error {
	kind := o.GroupVersionKind()
	mapping, err := i.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return describe(o, err)
	}
	var target dynamic.ResourceInterface = i.client.Resource(mapping.Resource)
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		target = i.client.Resource(mapping.Resource).Namespace(o.GetNamespace())
	}
	_, err = target.Apply(ctx, o.GetName(), o, forced())
	return describe(o, err)
}

func forced() metav1.ApplyOptions { return metav1.ApplyOptions{FieldManager: installer, Force: true} }

func describe(o *unstructured.Unstructured, err error) error {
	if err != nil {
		return fmt.Errorf("install %s %s: %w", o.GetKind(), o.GetName(), err)
	}
	return nil
}
