package sidecar

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// Inject gives the pod with what spec says, in place of anything that was injected before: what has changed since then is lost. It does not change the pod
// that it is given. An error names the one thing that is in the way.
func Inject(pod *corev1.Pod, spec Spec) (*corev1.Pod, error) {
	out, err := original(pod)
	if err != nil {
		return nil, fmt.Errorf("inject into pod %s: %w", pod.Name, err)
	}
	before, err := json.Marshal(out)
	if err == nil {
		err = inject(out, spec)
	}
	if err != nil {
		return nil, fmt.Errorf("inject into pod %s: %w", pod.Name, err)
	}
	metav1.SetMetaDataAnnotation(&out.ObjectMeta, Annotation, string(before))
	return out, nil
}

// original is a copy of the pod as it was before anything was injected.
func original(pod *corev1.Pod) (*corev1.Pod, error) {
	text, injected := pod.Annotations[Annotation]
	if !injected {
		return pod.DeepCopy(), nil
	}
	before := &corev1.Pod{}
	if err := json.Unmarshal([]byte(text), before); err != nil {
		return nil, fmt.Errorf("annotation %s: %w", Annotation, err)
	}
	return before, nil
}

func inject(pod *corev1.Pod, spec Spec) error {
	volumes, err := spec.volumes()
	if err != nil {
		return err
	}
	server, err := apiServer(pod)
	if err != nil {
		return err
	}
	if err := spec.APIServer.merge(server); err != nil {
		return err
	}
	for _, m := range volumes {
		pod.Spec.Volumes = append(pod.Spec.Volumes, m.Volume())
	}
	for _, c := range spec.Sidecars {
		switch {
		case c.Image == "":
			return fmt.Errorf("sidecar %s has no image", c.Name)
		case c.AfterAPIServer && c.StartupProbe != nil:
			return fmt.Errorf("sidecar %s waits for the API server, which would wait for its startup probe: give it none", c.Name)
		}
		pod.Spec.InitContainers = append(pod.Spec.InitContainers, c.Container())
	}
	for name, value := range spec.Labels {
		metav1.SetMetaDataLabel(&pod.ObjectMeta, name, value)
	}
	pod.Namespace = cmp.Or(spec.Namespace, pod.Namespace)
	return validate(pod)
}

func apiServer(pod *corev1.Pod) (*corev1.Container, error) {
	i := slices.IndexFunc(pod.Spec.Containers, func(c corev1.Container) bool { return c.Name == APIServerContainer })
	if i < 0 {
		return nil, fmt.Errorf("it has no container %s", APIServerContainer)
	}
	return &pod.Spec.Containers[i], nil
}

// Container is the init container of a sidecar. It shares nothing with the spec.
func (s Sidecar) Container() corev1.Container {
	c := corev1.Container{
		Name: s.Name, Image: s.Image, Command: s.Command, Args: s.Args, Env: s.Env,
		StartupProbe: s.StartupProbe, SecurityContext: s.SecurityContext, TerminationMessagePolicy: s.TerminationMessagePolicy,
		RestartPolicy:   ptr.To(corev1.ContainerRestartPolicyAlways),
		ImagePullPolicy: corev1.PullIfNotPresent, // images are loaded into nodes, there may be no registry to pull from
	}
	for _, m := range s.Mounts {
		c.VolumeMounts = append(c.VolumeMounts, m.mount())
	}
	return *c.DeepCopy()
}

func (m Mount) mount() corev1.VolumeMount {
	return corev1.VolumeMount{Name: Prefix + m.Name, MountPath: m.MountPath, ReadOnly: m.ReadOnly}
}

// Volume is what a pod has for a mount.
func (m Mount) Volume() corev1.Volume {
	source := corev1.HostPathVolumeSource{Path: m.HostPath}
	if m.Type != corev1.HostPathUnset {
		source.Type = ptr.To(m.Type)
	}
	return corev1.Volume{Name: Prefix + m.Name, VolumeSource: corev1.VolumeSource{HostPath: &source}}
}

// merge changes the API server's own container.
func (a APIServer) merge(c *corev1.Container) error {
	for _, m := range a.Mounts {
		c.VolumeMounts = append(c.VolumeMounts, m.mount())
	}
	for _, f := range a.Flags {
		if err := setFlag(c, f); err != nil {
			return err
		}
	}
	if len(a.Wrap) > 0 && len(c.Command) == 0 {
		return fmt.Errorf("%s has no command that could be wrapped, only that of its image", c.Name)
	}
	c.Command = slices.Concat(a.Wrap, c.Command)
	if a.WithoutLiveness {
		c.LivenessProbe = nil
	}
	return nil
}
