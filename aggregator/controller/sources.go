package controller

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/kmsharness/kmsharness/aggregator/core"
	"github.com/kmsharness/kmsharness/contract"
)

func operatorGVR(op core.Operator) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: core.OperatorGroup, Version: core.OperatorVersion, Resource: op.Resource}
}

func clusterOperatorGVR() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: core.ConfigGroup, Version: core.ConfigVersion, Resource: "clusteroperators"}
}

func apiServerGVR() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: core.ConfigGroup, Version: core.ConfigVersion, Resource: "apiservers"}
}

func healthGVR() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: contract.HealthGroup, Version: contract.HealthVersion, Resource: contract.HealthResource}
}

// objects is a source of one resource's full objects, in one namespace or (empty) all.
func objects(client dynamic.Interface, gvr schema.GroupVersionResource, namespace string) source {
	resource := client.Resource(gvr).Namespace(namespace)
	return source{
		name:     gvr.Resource,
		expected: &unstructured.Unstructured{},
		list: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return resource.List(ctx, o)
		},
		watch: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return resource.Watch(ctx, o)
		},
	}
}

// one is a source of a single cluster-scoped object.
func one(client dynamic.Interface, gvr schema.GroupVersionResource, name string) source {
	s := objects(client, gvr, "")
	s.fields = "metadata.name=" + name
	return s
}

// expectedSource is the nodes that should report: Node objects by their metadata, which is all that counts of them,
// or pods.
func expectedSource(config *rest.Config, client dynamic.Interface, e Expected) (source, error) {
	if e.PodSelector != "" {
		s := objects(client, schema.GroupVersionResource{Version: "v1", Resource: "pods"}, e.PodNamespace)
		s.labels = e.PodSelector
		return s, nil
	}
	meta, err := metadata.NewForConfig(config)
	if err != nil {
		return source{}, fmt.Errorf("client for node metadata: %w", err)
	}
	nodes := meta.Resource(schema.GroupVersionResource{Version: "v1", Resource: "nodes"})
	return source{
		name:     "nodes",
		expected: &metav1.PartialObjectMetadata{},
		labels:   e.NodeSelector,
		list: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return nodes.List(ctx, o)
		},
		watch: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return nodes.Watch(ctx, o)
		},
	}, nil
}
