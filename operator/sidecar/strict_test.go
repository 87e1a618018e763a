package sidecar_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/kmsharness/kmsharness/operator/sidecar"
)

// Every conflict and every mistake is one line that names it.
func TestStrict(t *testing.T) {
	type change = func(*corev1.Pod, *sidecar.Spec)
	server := func(f func(*corev1.Container)) change {
		return func(p *corev1.Pod, _ *sidecar.Spec) { f(&p.Spec.Containers[0]) }
	}
	plugin := func(f func(*sidecar.Sidecar)) change {
		return func(_ *corev1.Pod, s *sidecar.Spec) { f(&s.Sidecars[0]) }
	}
	for text, change := range map[string]change{
		"container plugin-1 exists already": func(p *corev1.Pod, _ *sidecar.Spec) {
			p.Spec.InitContainers = append(p.Spec.InitContainers, corev1.Container{Name: "plugin-1", Image: "theirs"})
		},
		"volume kmsharness-run exists already": func(p *corev1.Pod, _ *sidecar.Spec) {
			p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: "kmsharness-run"})
		},
		"a static pod has none": func(p *corev1.Pod, _ *sidecar.Spec) { p.Spec.ServiceAccountName = "kms-plugin" },
		"a static pod has no ServiceAccount token": func(p *corev1.Pod, _ *sidecar.Spec) {
			token := corev1.VolumeProjection{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token"}}
			p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: "vault", VolumeSource: corev1.VolumeSource{
				Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{token}}}})
		},
		"kube-apiserver: two mounts at /etc/kubernetes/enc": server(func(c *corev1.Container) {
			c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: "theirs", MountPath: "/etc/kubernetes/enc"})
		}),
		"no container kube-apiserver": server(func(c *corev1.Container) { c.Name = "other" }),
		"no command that could be wrapped": server(func(c *corev1.Container) {
			c.Command, c.Args = nil, []string{"--secure-port=6443"}
		}),
		"authorization-mode of kube-apiserver stands there twice": server(func(c *corev1.Container) { c.Args = []string{"--authorization_mode=ABAC"} }),
		"value in an argument of its own": server(func(c *corev1.Container) {
			c.Command = []string{"kube-apiserver", "--encryption-provider-config", "file"}
		}),
		"annotation kmsharness.io/injected: invalid": func(p *corev1.Pod, _ *sidecar.Spec) { p.Annotations[sidecar.Annotation] = "{x" },
		"must be a DNS label":                        plugin(func(s *sidecar.Sidecar) { s.Name = "Plugin" }),
		"container reporter exists already":          plugin(func(s *sidecar.Sidecar) { s.Name = "reporter" }),
		"plugin-1 has no image":                      plugin(func(s *sidecar.Sidecar) { s.Image = "" }),
		"give it none":                               plugin(func(s *sidecar.Sidecar) { s.AfterAPIServer = true }),
		"two mounts at /run/kmsharness":              plugin(func(s *sidecar.Sidecar) { s.Mounts[1].MountPath = "/run/kmsharness" }),
		"but elsewhere":                              plugin(func(s *sidecar.Sidecar) { s.Mounts[0].HostPath = "/elsewhere" }),
		`path "run"`:                                 plugin(func(s *sidecar.Sidecar) { s.Mounts[0].MountPath = "run" }),
		`path "/run/../etc"`:                         plugin(func(s *sidecar.Sidecar) { s.Mounts[0].HostPath = "/run/../etc" }),
		"a colon":                                    plugin(func(s *sidecar.Sidecar) { s.Mounts[0].MountPath = "/a:ro" }),
		`volume "kmsharness-a/b"`:                    plugin(func(s *sidecar.Sidecar) { s.Mounts[0].Name = "a/b" }),
	} {
		pod, s := parse(t, manifest(t)), spec()
		change(pod, &s)
		if _, err := sidecar.Inject(pod, s); err == nil || !strings.Contains(err.Error(), text) || strings.Contains(err.Error(), "\n") {
			t.Errorf("got %v, want one line with %q", err, text)
		}
	}
}

func TestManifestIsReadStrictly(t *testing.T) {
	for text, manifest := range map[string]string{
		"unknown field":          "apiVersion: v1\nkind: Pod\nspec: {containerz: []}\n",
		"expected a Pod of v1":   "apiVersion: apps/v1\nkind: Deployment\n",
		"more than one document": "---\napiVersion: v1\nkind: Pod\n---\nkind: Pod\n",
		"already set":            "apiVersion: v1\nkind: Pod\nkind: Pod\n",
	} {
		if _, err := sidecar.InjectManifest([]byte(manifest), sidecar.Spec{}); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%q: %v, want %q", manifest, err, text)
		}
	}
}
