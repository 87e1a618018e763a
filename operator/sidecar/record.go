package sidecar

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// record is the annotation: everything that an injection did, in full names.
type record struct {
	Containers []string `json:"containers,omitempty"`
	Volumes    []string `json:"volumes,omitempty"`
	Labels     []string `json:"labels,omitempty"`
	// Namespace is the one before it was changed.
	Namespace *string `json:"namespace,omitempty"`
	// Flags, Wrap and Liveness are about the API server's own container. Liveness is the probe that was taken away.
	Flags    []change      `json:"flags,omitempty"`
	Wrap     []string      `json:"wrap,omitempty"`
	Liveness *corev1.Probe `json:"liveness,omitempty"`
}

// readRecord gives nil for a pod into which nothing was injected.
func readRecord(pod *corev1.Pod) (*record, error) {
	text, ok := pod.Annotations[Annotation]
	if !ok {
		return nil, nil
	}
	var r record
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		return nil, fmt.Errorf("annotation %s: %w: it cannot be told what was injected", Annotation, err)
	}
	for _, name := range r.Volumes {
		if !strings.HasPrefix(name, Prefix) {
			return nil, fmt.Errorf("annotation %s lists the volume %q, which is not ours: our names begin with %s", Annotation, name, Prefix)
		}
	}
	for _, c := range pod.Spec.InitContainers {
		if slices.Contains(r.Containers, c.Name) && (c.RestartPolicy == nil || *c.RestartPolicy != corev1.ContainerRestartPolicyAlways) {
			return nil, fmt.Errorf("annotation %s lists the container %q, which is not ours: it is no restartable init container", Annotation, c.Name)
		}
	}
	return &r, nil
}

func (r *record) write(pod *corev1.Pod) error {
	b, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("annotation %s: %w", Annotation, err)
	}
	metav1.SetMetaDataAnnotation(&pod.ObjectMeta, Annotation, string(b))
	return nil
}
