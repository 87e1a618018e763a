package sidecar

import (
	"fmt"
	"path"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// volumes are the volumes that a spec needs, by the name in the spec, in the order of their first mention.
func (s Spec) volumes() ([]Mount, error) {
	var all []Mount
	seen := map[string]Mount{}
	add := func(where string, mounts []Mount) error {
		used := map[string]bool{}
		for _, m := range mounts {
			before, shared := seen[m.Name]
			switch {
			case used[m.MountPath]:
				return fmt.Errorf("%s: two mounts at %s", where, m.MountPath)
			case shared && (before.HostPath != m.HostPath || before.Type != m.Type):
				return fmt.Errorf("%s: volume %s is %s (%s), but elsewhere %s (%s)", where, m.Name, m.HostPath, m.Type, before.HostPath, before.Type)
			case !shared:
				all = append(all, m)
			}
			if err := m.validate(); err != nil {
				return fmt.Errorf("%s: %w", where, err)
			}
			seen[m.Name], used[m.MountPath] = m, true
		}
		return nil
	}
	for _, c := range s.Sidecars {
		if err := add("sidecar "+c.Name, c.Mounts); err != nil {
			return nil, err
		}
	}
	return all, add(APIServerContainer, s.APIServer.Mounts)
}

func (m Mount) validate() error {
	if problems := validation.IsDNS1123Label(Prefix + m.Name); len(problems) > 0 {
		return fmt.Errorf("volume %q: with %s before it, its name must be a DNS label: %s", m.Name, Prefix, problems[0])
	}
	for _, p := range []string{m.HostPath, m.MountPath} {
		if !path.IsAbs(p) || path.Clean(p) != p || p == "/" {
			return fmt.Errorf("volume %s: path %q: expected a clean absolute path below /", m.Name, p)
		}
	}
	if strings.Contains(m.MountPath, ":") {
		return fmt.Errorf("volume %s: mount path %q: a colon is not allowed there", m.Name, m.MountPath)
	}
	return nil
}

// validate looks at everything that can be judged without a pod.
func (s Spec) validate() error {
	seen := map[string]bool{}
	for _, c := range s.Sidecars {
		if problems := validation.IsDNS1123Label(c.Name); len(problems) > 0 {
			return fmt.Errorf("sidecar %q: its name must be a DNS label: %s", c.Name, problems[0])
		}
		switch {
		case seen[c.Name]:
			return fmt.Errorf("two sidecars are named %s", c.Name)
		case c.Image == "":
			return fmt.Errorf("sidecar %s has no image", c.Name)
		case c.AfterAPIServer && c.StartupProbe != nil:
			return fmt.Errorf("sidecar %s waits for the API server, which would wait for its startup probe: give it none", c.Name)
		}
		seen[c.Name] = true
	}
	return validateFlags(s.APIServer.Flags)
}

func validateFlags(flags []Flag) error {
	seen := map[string]bool{}
	for _, f := range flags {
		switch {
		case f.Name == "" || strings.HasPrefix(f.Name, "-") || strings.ContainsAny(f.Name, "= \n"):
			return fmt.Errorf("flag %q of %s: expected a name without dashes before it, such as encryption-provider-config", f.Name, APIServerContainer)
		case seen[f.Name]:
			return fmt.Errorf("flag %s of %s is given twice", f.Name, APIServerContainer)
		}
		seen[f.Name] = true
	}
	return nil
}

// conflicts looks for names of the spec that somebody else has in the pod.
func conflicts(pod *corev1.Pod, s Spec, volumes []Mount) error {
	names := map[string]bool{}
	for _, c := range pod.Spec.InitContainers {
		names[c.Name] = true
	}
	for _, c := range pod.Spec.Containers {
		names[c.Name] = true
	}
	for _, c := range s.Sidecars {
		if names[c.Name] {
			return fmt.Errorf("container %s exists already and was not injected by us: rename it or remove it", c.Name)
		}
	}
	for name := range s.Labels {
		if value, there := pod.Labels[name]; there {
			return fmt.Errorf("label %s=%s exists already and was not set by us: remove it", name, value)
		}
	}
	for _, v := range pod.Spec.Volumes {
		for _, m := range volumes {
			if v.Name == Prefix+m.Name {
				return fmt.Errorf("volume %s exists already and was not injected by us: rename it or remove it", v.Name)
			}
		}
	}
	return nil
}
