package sidecar_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"pgregory.net/rapid"

	"github.com/kmsharness/kmsharness/operator/sidecar"
)

// anySpec is a spec without mistakes.
func anySpec(t *rapid.T, label string) sidecar.Spec {
	var s sidecar.Spec
	mounts := func(label string) (all []sidecar.Mount) {
		for _, i := range rapid.SliceOfNDistinct(rapid.IntRange(0, 5), 0, 4, rapid.ID[int]).Draw(t, label) {
			all = append(all, sidecar.Mount{
				Name: fmt.Sprint("v", i), HostPath: fmt.Sprint("/host/", i), MountPath: fmt.Sprint("/in/", i),
				ReadOnly: rapid.Bool().Draw(t, "read-only"), Type: []corev1.HostPathType{corev1.HostPathUnset, corev1.HostPathDirectoryOrCreate}[i%2],
			})
		}
		return all
	}
	words := rapid.SliceOfN(rapid.StringMatching(`[a-z/=-]{1,8}`), 0, 3)
	for _, i := range rapid.SliceOfNDistinct(rapid.IntRange(0, 5), 0, 4, rapid.ID[int]).Draw(t, label+" sidecars") {
		s.Sidecars = append(s.Sidecars, sidecar.Sidecar{
			Name: fmt.Sprint("s", i), Image: "image", Command: words.Draw(t, "command"), Args: words.Draw(t, "args"), Mounts: mounts("mounts"),
		})
	}
	flags := rapid.SampledFrom([]string{"authorization-mode", "secure-port", "runtime-config", "allow_privileged", "profiling", "v"})
	values := rapid.SampledFrom([]string{"", "6443", "x", "Node,RBAC"})
	for _, name := range rapid.SliceOfNDistinct(flags, 0, 5, rapid.ID[string]).Draw(t, label+" flags") {
		s.APIServer.Flags = append(s.APIServer.Flags, sidecar.Flag{Name: name, Value: values.Draw(t, "value")})
	}
	s.APIServer.Mounts, s.APIServer.Wrap = mounts(label+" mounts of the API server"), words.Draw(t, label+" wrap")
	s.APIServer.WithoutLiveness = rapid.Bool().Draw(t, label+" without liveness")
	return s
}

// anyPod is kubeadm's pod, changed by others.
func anyPod(t *rapid.T, pod *corev1.Pod) *corev1.Pod {
	pod = pod.DeepCopy()
	server := &pod.Spec.Containers[0]
	for i := range rapid.IntRange(0, 2).Draw(t, "foreign init containers") {
		pod.Spec.InitContainers = append(pod.Spec.InitContainers, corev1.Container{Name: fmt.Sprint("theirs-", i), VolumeMounts: server.VolumeMounts})
	}
	if rapid.Bool().Draw(t, "flags as arguments") {
		server.Command, server.Args = []string{server.Command[0]}, server.Command[1:]
	}
	if rapid.Bool().Draw(t, "bare flag") {
		server.Command = append(server.Command, "--profiling")
	}
	if rapid.Bool().Draw(t, "no liveness") {
		server.LivenessProbe = nil
	}
	if rapid.Bool().Draw(t, "no annotations") {
		pod.Annotations = nil
	}
	return pod
}

func TestProperties(t *testing.T) {
	from := parse(t, manifest(t))
	rapid.Check(t, func(t *rapid.T) {
		pod, a, b := anyPod(t, from), anySpec(t, "a"), anySpec(t, "b")
		do := func(pod *corev1.Pod, s sidecar.Spec) *corev1.Pod {
			out, err := sidecar.Inject(pod, s)
			if err != nil {
				t.Fatal(err)
			}
			return out
		}
		equal := func(what string, got, want *corev1.Pod) {
			if !equality.Semantic.DeepEqual(got, want) {
				t.Fatalf("%s:\n got %+v\nwant %+v", what, got, want)
			}
		}
		once := do(pod, a)
		equal("twice is once", do(once, a), once)
		equal("the last one counts", do(do(pod, b), a), once)
		if nothing := do(once, sidecar.Spec{}); len(nothing.Annotations) != len(pod.Annotations)+1 {
			t.Fatalf("%v, expected one annotation more than %v", nothing.Annotations, pod.Annotations)
		} else {
			nothing.Annotations = pod.Annotations
			equal("nothing injected is as before", nothing, pod)
		}
		foreignIsUntouched(t, pod, once, a)
	})
}

// foreignIsUntouched looks at everything but the API server's own container and what was added.
func foreignIsUntouched(t *rapid.T, before, after *corev1.Pod, s sidecar.Spec) {
	strip := func(pod *corev1.Pod, inits, volumes int) *corev1.Pod {
		pod = pod.DeepCopy()
		pod.Annotations, pod.Spec.Containers[0] = nil, corev1.Container{}
		pod.Spec.InitContainers, pod.Spec.Volumes = pod.Spec.InitContainers[:inits], pod.Spec.Volumes[:volumes]
		return pod
	}
	inits, volumes := len(before.Spec.InitContainers), len(before.Spec.Volumes)
	if !equality.Semantic.DeepEqual(strip(after, inits, volumes), strip(before, inits, volumes)) {
		t.Fatalf("something else was touched:\n got %+v\nfrom %+v", after, before)
	}
	for i, c := range after.Spec.InitContainers[inits:] {
		if c.Name != s.Sidecars[i].Name {
			t.Fatalf("sidecar %d is %s, in order of %+v", i, c.Name, s.Sidecars)
		}
	}
}
