package sidecar_test

import (
	"bytes"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/kmsharness/kmsharness/operator/sidecar"
)

func TestInject(t *testing.T) {
	before := parse(t, manifest(t))
	b, err := sidecar.InjectManifest(manifest(t), spec())
	if err != nil {
		t.Fatal(err)
	}
	pod := parse(t, b)
	var names []string
	for _, c := range pod.Spec.InitContainers {
		names = append(names, c.Name)
		if c.RestartPolicy == nil || *c.RestartPolicy != corev1.ContainerRestartPolicyAlways || c.ImagePullPolicy != corev1.PullIfNotPresent {
			t.Errorf("%s: %+v", c.Name, c)
		}
	}
	same(t, "init containers", names, "plugin-1", "reporter")
	names = nil
	for _, v := range pod.Spec.Volumes[len(before.Spec.Volumes):] {
		names = append(names, v.Name+"="+v.HostPath.Path)
	}
	same(t, "volumes", names, "kmsharness-run=/run/kmsharness", "kmsharness-bin=/kmsharness/bin",
		"kmsharness-sockets=/run/kmsplugin", "kmsharness-enc=/etc/kubernetes/enc")
	if m := pod.Spec.InitContainers[1].VolumeMounts[2]; m.Name != "kmsharness-sockets" || m.MountPath != "/run/kmsplugin" || !m.ReadOnly {
		t.Errorf("mount of the reporter: %+v", m)
	}
	if pod.Labels["revision"] != "7" || pod.Namespace != "openshift-kube-apiserver" || len(pod.Labels) != len(before.Labels)+1 {
		t.Errorf("labels %v in namespace %s", pod.Labels, pod.Namespace)
	}
	server, was := pod.Spec.Containers[0], before.Spec.Containers[0]
	want := slices.Concat(spec().APIServer.Wrap, was.Command, []string{"--encryption-provider-config=/etc/kubernetes/enc/config.yaml"})
	want[slices.Index(want, "--authorization-mode=Node,RBAC")] = "--authorization-mode=AlwaysAllow"
	same(t, "command", server.Command, want...)
	if server.LivenessProbe != nil || server.ReadinessProbe == nil || len(server.VolumeMounts) != len(was.VolumeMounts)+4 {
		t.Errorf("API server: %+v", server)
	}
}

func same(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s:\n got %q\nwant %q", what, got, want)
	}
}

// A kubelet restarts the pod for every byte that differs in meaning, so nothing may differ.
func TestManifestTwiceIsOnce(t *testing.T) {
	once, err := sidecar.InjectManifest(manifest(t), spec())
	if err != nil {
		t.Fatal(err)
	}
	twice, err := sidecar.InjectManifest(once, spec())
	if err != nil || !bytes.Equal(once, twice) {
		t.Errorf("injected twice: %v\n%s", err, twice)
	}
}

func TestTheInputStaysAsItIs(t *testing.T) {
	pod, s := parse(t, manifest(t)), spec()
	out, err := sidecar.Inject(pod, s)
	if err != nil {
		t.Fatal(err)
	}
	out.Spec.InitContainers[0].Command[0], out.Spec.InitContainers[0].StartupProbe.PeriodSeconds = "changed", 7
	out.Spec.Containers[0].Command[0] = "changed"
	if b, err := yaml.Marshal(pod); err != nil || !bytes.Equal(b, manifest(t)) {
		t.Errorf("the pod has changed: %v\n%s", err, b)
	}
	if c := s.Sidecars[0]; c.Command[0] == "changed" || c.StartupProbe.PeriodSeconds == 7 || s.APIServer.Wrap[0] == "changed" {
		t.Errorf("the spec has changed: %+v", s)
	}
}
