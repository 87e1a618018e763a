package sidecar

import (
	"bytes"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// InjectManifest is Inject for the manifest of a static pod. The result is the same for the same input, byte by byte, so a
// kubelet that finds it again restarts nothing.
func InjectManifest(manifest []byte, spec Spec) ([]byte, error) {
	pod, err := decode(manifest)
	if err != nil {
		return nil, fmt.Errorf("read the manifest of a static pod: %w", err)
	}
	if pod, err = Inject(pod, spec); err != nil {
		return nil, err
	}
	out, err := yaml.Marshal(pod)
	if err != nil {
		return nil, fmt.Errorf("write the manifest of pod %s: %w", pod.Name, err)
	}
	return out, nil
}

// decode is strict: what this build does not know, or does not read, would be missing in what it writes.
func decode(manifest []byte) (*corev1.Pod, error) {
	if bytes.Contains(bytes.TrimPrefix(manifest, []byte("---")), []byte("\n---")) {
		return nil, errors.New("it holds more than one document: expected one pod")
	}
	var pod corev1.Pod
	if err := yaml.UnmarshalStrict(manifest, &pod); err != nil {
		return nil, err
	}
	if pod.APIVersion != "v1" || pod.Kind != "Pod" {
		return nil, fmt.Errorf("it is %q of %q: expected a Pod of v1", pod.Kind, pod.APIVersion)
	}
	return &pod, nil
}
