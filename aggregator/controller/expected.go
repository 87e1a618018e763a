package controller

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// expectedNodes is the nodes that should report, each with its time of creation: Nodes by their own, nodes that run
// an API server pod by the oldest such pod. podNodeLabel is that of Expected.
func expectedNodes(items []any, podNodeLabel string) map[string]time.Time {
	out := make(map[string]time.Time, len(items))
	for _, item := range items {
		name, created := nodeOf(item, podNodeLabel)
		if old, known := out[name]; name != "" && (!known || created.Before(old)) {
			out[name] = created
		}
	}
	return out
}

// nodeOf is empty for a pod that is not scheduled, or whose containers have ended for good.
func nodeOf(item any, podNodeLabel string) (name string, created time.Time) {
	switch o := item.(type) {
	case *metav1.PartialObjectMetadata:
		return o.Name, o.CreationTimestamp.UTC()
	case *unstructured.Unstructured:
		phase, _, _ := unstructured.NestedString(o.Object, "status", "phase")
		if phase == "Succeeded" || phase == "Failed" {
			return "", time.Time{}
		}
		if podNodeLabel != "" {
			return o.GetLabels()[podNodeLabel], o.GetCreationTimestamp().UTC()
		}
		name, _, _ = unstructured.NestedString(o.Object, "spec", "nodeName")
		return name, o.GetCreationTimestamp().UTC()
	}
	return "", time.Time{}
}
