package sidecar_test

import (
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/kmsharness/kmsharness/operator/sidecar"
)

// kubeadm is what kubeadm 1.37 writes for a control-plane node of kind.
const kubeadm = "testdata/kube-apiserver.yaml"

func manifest(t testing.TB) []byte {
	t.Helper()
	b, err := os.ReadFile(kubeadm)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func parse(t testing.TB, b []byte) *corev1.Pod {
	t.Helper()
	var pod corev1.Pod
	if err := yaml.UnmarshalStrict(b, &pod); err != nil {
		t.Fatal(err)
	}
	return &pod
}

// spec is what a backend injects: a plugin, a reporter behind the API server, and the API server under hold.
func spec() sidecar.Spec {
	run := sidecar.Mount{Name: "run", HostPath: "/run/kmsharness", Type: corev1.HostPathDirectoryOrCreate, MountPath: "/run/kmsharness"}
	hold := sidecar.Mount{Name: "bin", HostPath: "/kmsharness/bin", Type: corev1.HostPathDirectory, MountPath: "/kmsharness/bin", ReadOnly: true}
	sockets := sidecar.Mount{Name: "sockets", HostPath: "/run/kmsplugin", Type: corev1.HostPathDirectoryOrCreate, MountPath: "/run/kmsplugin"}
	enc := sidecar.Mount{Name: "enc", HostPath: "/etc/kubernetes/enc", MountPath: "/etc/kubernetes/enc", ReadOnly: true}
	readOnly := sockets
	readOnly.ReadOnly = true
	return sidecar.Spec{
		Labels: map[string]string{"revision": "7"}, Namespace: "openshift-kube-apiserver",
		Sidecars: []sidecar.Sidecar{
			{
				Name: "plugin-1", Image: "kmsharness/fake-kms-plugin:dev", Command: []string{"/kmsharness/bin/kmsharness-supervisor", "--"},
				Args: []string{"/fake-kms-plugin", "serve"}, Mounts: []sidecar.Mount{run, hold, sockets},
				StartupProbe: &corev1.Probe{PeriodSeconds: 1},
			},
			{
				Name: "reporter", Image: "kmsharness/kms-health-reporter:dev", Env: []corev1.EnvVar{{Name: "GOGC", Value: "50"}},
				Mounts: []sidecar.Mount{run, hold, readOnly}, AfterAPIServer: true,
			},
		},
		APIServer: sidecar.APIServer{
			Flags: []sidecar.Flag{
				{Name: "encryption-provider-config", Value: "/etc/kubernetes/enc/config.yaml"},
				{Name: "authorization-mode", Value: "AlwaysAllow"},
			},
			Mounts:          []sidecar.Mount{run, hold, sockets, enc},
			Wrap:            []string{"/kmsharness/bin/kmsharness-supervisor", "--control", "unix:///run/kmsharness/apiserver.sock", "--"},
			WithoutLiveness: true,
		},
	}
}
