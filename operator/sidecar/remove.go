package sidecar

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Remove gives the pod as it was before anything was injected; changes that others made since then stay. It does not
// change the pod that it is given.
func Remove(pod *corev1.Pod) (*corev1.Pod, error) {
	out := pod.DeepCopy()
	done, err := readRecord(out)
	if err == nil && done != nil {
		err = done.undo(out)
	}
	if err != nil {
		return nil, fmt.Errorf("remove what was injected into pod %s: %w", pod.Name, err)
	}
	return out, nil
}

func (r *record) undo(pod *corev1.Pod) error {
	server, err := apiServer(pod)
	if err != nil {
		return err
	}
	if err := r.unmerge(server); err != nil {
		return err
	}
	spec := &pod.Spec
	spec.InitContainers = slices.DeleteFunc(spec.InitContainers, func(c corev1.Container) bool { return slices.Contains(r.Containers, c.Name) })
	if err := r.unused(pod); err != nil {
		return err
	}
	spec.Volumes = slices.DeleteFunc(spec.Volumes, func(v corev1.Volume) bool { return slices.Contains(r.Volumes, v.Name) })
	if r.Namespace != nil {
		pod.Namespace = *r.Namespace
	}
	for _, name := range r.Labels {
		delete(pod.Labels, name)
	}
	if len(pod.Labels) == 0 {
		pod.Labels = nil
	}
	if delete(pod.Annotations, Annotation); len(pod.Annotations) == 0 {
		pod.Annotations = nil
	}
	return nil
}

// unmerge takes our changes out of the API server's own container, in the reverse order.
func (r *record) unmerge(c *corev1.Container) error {
	if len(c.Command) < len(r.Wrap) || !slices.Equal(c.Command[:len(r.Wrap)], r.Wrap) {
		return fmt.Errorf("the command of %s was wrapped by %s and has been changed since: restore it by hand", c.Name, r.Wrap[0])
	}
	c.Command = slices.Delete(c.Command, 0, len(r.Wrap))
	for _, change := range slices.Backward(r.Flags) {
		change.unset(c)
	}
	if c.LivenessProbe == nil {
		c.LivenessProbe = r.Liveness
	}
	c.VolumeMounts = slices.DeleteFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return slices.Contains(r.Volumes, m.Name) })
	return nil
}

// unused makes sure that nobody else relies on a volume that is about to go: the kubelet would refuse the whole pod.
func (r *record) unused(pod *corev1.Pod) error {
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		for _, m := range c.VolumeMounts {
			if slices.Contains(r.Volumes, m.Name) {
				return fmt.Errorf("container %s, which is not ours, mounts our volume %s: take the mount out first", c.Name, m.Name)
			}
		}
	}
	return nil
}
