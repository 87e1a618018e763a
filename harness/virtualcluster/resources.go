package virtualcluster

import (
	"fmt"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kmsharness/kmsharness/harness/cluster/virtual/store"
)

// Resource is one that API servers serve without a schema.
type Resource struct {
	schema.GroupVersionKind
	// Plural is its name in URLs, such as "deployments".
	Plural string
	// ClusterScoped objects have no namespace.
	ClusterScoped bool
	// Status: there is a status subresource.
	Status bool
}

// common are the resources of kube-apiserver that the store does not have by itself.
func common() []Resource {
	kind := func(group, kind, plural string, status bool) Resource {
		return Resource{GroupVersionKind: schema.GroupVersionKind{Group: group, Version: "v1", Kind: kind}, Plural: plural, Status: status}
	}
	volume := kind("", "PersistentVolume", "persistentvolumes", true)
	volume.ClusterScoped = true
	return []Resource{
		volume, kind("", "PersistentVolumeClaim", "persistentvolumeclaims", true), kind("", "Endpoints", "endpoints", false),
		kind("apps", "Deployment", "deployments", true), kind("apps", "ReplicaSet", "replicasets", true), kind("apps", "StatefulSet", "statefulsets", true),
		kind("apps", "DaemonSet", "daemonsets", true), kind("batch", "Job", "jobs", true), kind("batch", "CronJob", "cronjobs", true),
		kind("policy", "PodDisruptionBudget", "poddisruptionbudgets", true), kind("networking.k8s.io", "Ingress", "ingresses", true),
		kind("networking.k8s.io", "NetworkPolicy", "networkpolicies", false), kind("discovery.k8s.io", "EndpointSlice", "endpointslices", false),
		kind("events.k8s.io", "Event", "events", false),
	}
}

// loadTypes is all that API servers serve.
func loadTypes(crds []*apiextensions.CustomResourceDefinition, further []Resource) (*store.Types, error) {
	for _, crd := range crds {
		if err := checkVersions(crd); err != nil {
			return nil, fmt.Errorf("CRD %s: %w", crd.Name, err)
		}
	}
	var list []store.Type
	for _, r := range append(common(), further...) {
		if r.Kind == "" || r.Plural == "" || r.Version == "" {
			return nil, fmt.Errorf("resource %+v: expected a version, a kind and a plural", r)
		}
		list = append(list, store.Type{Resource: r.GroupVersion().WithResource(r.Plural), Kind: r.GroupVersionKind, Namespaced: !r.ClusterScoped, Status: r.Status, Unconditional: true})
	}
	return store.NewTypes(crds, list...)
}

// checkVersions is an error for a CRD of which not exactly one version can be served.
func checkVersions(crd *apiextensions.CustomResourceDefinition) error {
	versions := 0
	for _, v := range crd.Spec.Versions {
		if !v.Served {
			continue
		}
		versions++
		if v.Schema == nil || v.Schema.OpenAPIV3Schema == nil {
			return fmt.Errorf("expected a schema of version %s", v.Name)
		}
	}
	if versions != 1 {
		return fmt.Errorf("%d served versions, expected one: nothing converts objects", versions)
	}
	return nil
}
