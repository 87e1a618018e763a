package controller

import (
	"fmt"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/kmsharness/kmsharness/aggregator/core"
	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/internal/informer"
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
func objects(client dynamic.Interface, gvr schema.GroupVersionResource, namespace string) informer.Source {
	return informer.Of(gvr.Resource, &unstructured.Unstructured{}, client.Resource(gvr).Namespace(namespace))
}

// one is a source of a single cluster-scoped object.
func one(client dynamic.Interface, gvr schema.GroupVersionResource, name string) informer.Source {
	s := objects(client, gvr, "")
	s.Fields = "metadata.name=" + name
	return s
}

// expectedSource is the nodes that should report: Node objects by their metadata, which is all that counts of them,
// or pods.
func expectedSource(config *rest.Config, connection *http.Client, client dynamic.Interface, e Expected) (informer.Source, error) {
	if e.PodSelector != "" {
		s := objects(client, schema.GroupVersionResource{Version: "v1", Resource: "pods"}, e.PodNamespace)
		s.Labels = e.PodSelector
		return s, nil
	}
	meta, err := metadata.NewForConfigAndClient(config, connection)
	if err != nil {
		return informer.Source{}, fmt.Errorf("client for node metadata: %w", err)
	}
	s := informer.Of("nodes", &metav1.PartialObjectMetadata{}, meta.Resource(schema.GroupVersionResource{Version: "v1", Resource: "nodes"}))
	s.Labels = e.NodeSelector
	return s, nil
}
