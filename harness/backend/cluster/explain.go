package cluster

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// explain keeps the pods and events of a run that did not come up, and names the likely cause.
func explain(ctx context.Context, p *controlPlane, failed error, dir string) string {
	ctx, cancel := context.WithTimeout(ctx, bootTimeout)
	defer cancel()
	var pods corev1.PodList
	var events corev1.EventList
	if os.MkdirAll(dir, 0o755) == nil {
		if p.access.resources(p.run.name).List(ctx, &pods) == nil {
			keep(filepath.Join(dir, "pods.yaml"), pods)
		}
		if p.access.resources(p.run.name).List(ctx, &events) == nil {
			keep(filepath.Join(dir, "events.yaml"), events)
		}
	}
	if cause := waiting(pods.Items); cause != "" {
		return cause
	}
	line, _, _ := strings.Cut(failed.Error(), "\n")
	return line
}

// keep writes an object for people, so nothing fails if that cannot be done.
func keep(file string, object any) {
	if text, err := yaml.Marshal(object); err == nil {
		_ = os.WriteFile(file, text, 0o644)
	}
}

// waiting says what a container waits for, and what to do about it; empty: none waits.
func waiting(pods []corev1.Pod) string {
	for _, pod := range pods {
		for _, c := range append(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses...) {
			w := c.State.Waiting
			if w == nil || w.Reason == "PodInitializing" || w.Reason == "ContainerCreating" {
				continue
			}
			if strings.Contains(w.Reason, "Image") || strings.Contains(w.Reason, "ErrImage") {
				return fmt.Sprintf("image %s is not on the node and cannot be pulled: load what make images builds into the nodes, or name a registry with --image-prefix", c.Image)
			}
			return fmt.Sprintf("container %s of pod %s: %s", c.Name, pod.Name, w.Reason)
		}
	}
	return ""
}
