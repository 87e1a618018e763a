package sidecar

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"
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

// setFlag sets a flag where it stands, or behind all others.
func setFlag(c *corev1.Container, f Flag) error {
	text := "--" + f.Name + "=" + f.Value
	at, err := findFlag(c, f.Name)
	switch {
	case err != nil:
		return err
	case at != nil:
		*at = text
	case len(c.Args) > 0:
		c.Args = append(c.Args, text)
	default: // kubeadm's place for flags
		c.Command = append(c.Command, text)
	}
	return nil
}

// findFlag is the place of a flag; nil if it is not set.
func findFlag(c *corev1.Container, name string) (found *string, err error) {
	for _, list := range [][]string{c.Command, c.Args} {
		for i := range list {
			written, _, whole := strings.Cut(strings.TrimLeft(list[i], "-"), "=")
			// Kubernetes reads an underscore in the name of a flag as a dash.
			if !strings.HasPrefix(list[i], "-") || strings.ReplaceAll(written, "_", "-") != strings.ReplaceAll(name, "_", "-") {
				continue
			}
			switch {
			case found != nil:
				return nil, fmt.Errorf("flag %s of %s stands there twice: which one is to be replaced is not clear", name, c.Name)
			case !whole && i+1 < len(list) && !strings.HasPrefix(list[i+1], "-"):
				return nil, fmt.Errorf("flag %s of %s has its value in an argument of its own: write it as --%s=VALUE", name, c.Name, name)
			}
			found = &list[i]
		}
	}
	return found, nil
}

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
