package sidecar

import (
	"fmt"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// volumes are the volumes that a spec needs, by the name in the spec, in the order of their first mention.
func (s Spec) volumes() (all []Mount, err error) {
	mounts := slices.Clone(s.APIServer.Mounts)
	for _, c := range slices.Backward(s.Sidecars) {
		mounts = slices.Concat(c.Mounts, mounts)
	}
	for _, m := range mounts {
		i := slices.IndexFunc(all, func(before Mount) bool { return before.Name == m.Name })
		switch {
		case !clean(m.HostPath):
			return nil, fmt.Errorf("volume %s: path %q: expected a clean absolute path below /", m.Name, m.HostPath)
		case i < 0:
			all = append(all, m)
		case all[i].HostPath != m.HostPath || all[i].Type != m.Type:
			return nil, fmt.Errorf("volume %s is %s (%s), but elsewhere %s (%s)", m.Name, all[i].HostPath, all[i].Type, m.HostPath, m.Type)
		}
	}
	return all, nil
}

func clean(p string) bool { return path.IsAbs(p) && path.Clean(p) == p && p != "/" }

// validate finds what a kubelet would refuse in a pod: names that are used twice, also by somebody else, or that are none,
// and what a static pod cannot refer to.
func validate(pod *corev1.Pod) error {
	volumes, containers := map[string]bool{}, map[string]bool{}
	if account := pod.Spec.ServiceAccountName; account != "" {
		return fmt.Errorf("ServiceAccount %s: a static pod has none", account)
	}
	for _, v := range pod.Spec.Volumes {
		if p := v.Projected; p != nil && slices.ContainsFunc(p.Sources, func(s corev1.VolumeProjection) bool { return s.ServiceAccountToken != nil }) {
			return fmt.Errorf("volume %s: a static pod has no ServiceAccount token", v.Name)
		}
		if err := name("volume", v.Name, volumes); err != nil {
			return err
		}
	}
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		if err := name("container", c.Name, containers); err != nil {
			return err
		}
		paths := map[string]bool{}
		for _, m := range c.VolumeMounts {
			switch {
			case paths[m.MountPath]:
				return fmt.Errorf("container %s: two mounts at %s", c.Name, m.MountPath)
			case !clean(m.MountPath) || strings.Contains(m.MountPath, ":"):
				return fmt.Errorf("container %s: mount path %q: expected a clean absolute path below /, without a colon", c.Name, m.MountPath)
			}
			paths[m.MountPath] = true
		}
	}
	return nil
}

// name notes a name of a kind, which must be a DNS label that is not used yet.
func name(kind, name string, used map[string]bool) error {
	if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
		return fmt.Errorf("%s %q: its name must be a DNS label: %s", kind, name, problems[0])
	}
	if used[name] {
		return fmt.Errorf("%s %s exists already", kind, name)
	}
	used[name] = true
	return nil
}
