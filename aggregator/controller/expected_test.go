package controller

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func pod(name, node, label, phase, created string) any {
	return &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": name, "labels": map[string]any{"node": label}, "creationTimestamp": created},
		"spec":     map[string]any{"nodeName": node}, "status": map[string]any{"phase": phase},
	}}
}

func TestExpectedNodesOfPods(t *testing.T) {
	pods := []any{
		pod("a", "worker", "cp-1", "Running", "2026-05-08T12:00:00Z"), pod("b", "worker", "cp-2", "Pending", "2026-05-08T12:00:01Z"),
		pod("c", "worker", "cp-3", "Failed", "2026-05-08T12:00:02Z"), pod("d", "worker", "", "Running", "2026-05-08T12:00:03Z"),
	}
	for label, want := range map[string]string{"": "worker", "node": "cp-1,cp-2"} {
		got := expectedNodes(pods, label)
		if names := strings.Join(slices.Sorted(maps.Keys(got)), ","); names != want {
			t.Errorf("label %q: nodes %s, want %s", label, names, want)
		}
		if since, ok := got["worker"]; ok && since.Second() != 0 {
			t.Errorf("the node is expected since %v, want the oldest pod", since)
		}
	}
}
