package controlplane

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"
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

// Decode reads the objects of a YAML or JSON file with any number of documents. Empty documents are skipped.
func Decode(manifests []byte) ([]*unstructured.Unstructured, error) {
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(manifests), 4096)
	var all []*unstructured.Unstructured
	for {
		object := map[string]any{}
		err := decoder.Decode(&object)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, fmt.Errorf("document %d of the manifests: %w", len(all)+1, err)
		}
		if len(object) == 0 {
			continue
		}
		u := &unstructured.Unstructured{Object: object}
		if u.GetAPIVersion() == "" || u.GetKind() == "" || u.GetName() == "" {
			return nil, fmt.Errorf("document %d of the manifests: expected apiVersion, kind and metadata.name", len(all)+1)
		}
		all = append(all, u)
	}
}

// servePoll is small against the 100 to 200 ms that it takes until a new resource is served.
const servePoll = 20 * time.Millisecond

// waitServed returns when this API server lists every served version of the resources.
func (i *installation) waitServed(ctx context.Context, crds []*unstructured.Unstructured) error {
	for _, crd := range crds {
		resources, err := servedResources(crd)
		if err != nil {
			return describe(crd, err)
		}
		for _, r := range resources {
			if err := i.waitListed(ctx, r); err != nil {
				return fmt.Errorf("wait until %s is served: %w", r, err)
			}
		}
	}
	return nil
}

func (i *installation) waitListed(ctx context.Context, r schema.GroupVersionResource) error {
	var last error
	err := wait.PollUntilContextCancel(ctx, servePoll, true, func(ctx context.Context) (bool, error) {
		_, last = i.client.Resource(r).List(ctx, metav1.ListOptions{Limit: 1})
		if apierrors.IsNotFound(last) || apierrors.IsServiceUnavailable(last) || apierrors.IsTooManyRequests(last) {
			return false, nil
		}
		return true, last
	})
	if err != nil && !errors.Is(err, last) {
		return errors.Join(err, last)
	}
	return err
}

// servedResources are the resources that a CustomResourceDefinition makes.
func servedResources(crd *unstructured.Unstructured) ([]schema.GroupVersionResource, error) {
	var definition struct {
		Spec struct {
			Group string `json:"group"`
			Names struct {
				Plural string `json:"plural"`
			} `json:"names"`
			Versions []struct {
				Name   string `json:"name"`
				Served bool   `json:"served"`
			} `json:"versions"`
		} `json:"spec"`
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(crd.Object, &definition); err != nil {
		return nil, err
	}
	var all []schema.GroupVersionResource
	for _, v := range definition.Spec.Versions {
		if v.Served {
			all = append(all, schema.GroupVersionResource{Group: definition.Spec.Group, Version: v.Name, Resource: definition.Spec.Names.Plural})
		}
	}
	return all, nil
}
