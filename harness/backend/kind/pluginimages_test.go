package kind

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kmsharness/kmsharness/ci/images/archive"
	"github.com/kmsharness/kmsharness/harness/backend/live"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

// The kernel refuses the program of another machine, and an image can be made of it.
func TestForeignProgram(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	header, err := foreign(program)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(file, header, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := exec.Command(file).Run(); !errors.Is(err, syscall.ENOEXEC) {
		t.Errorf("it was run: %v, want %v", err, syscall.ENOEXEC)
	}
	if _, _, err := archive.Build(definition("plugin"), header); err != nil {
		t.Error(err)
	}
	for _, bad := range [][]byte{nil, program[:20], append([]byte("\x7fELF\x01"), program[5:]...)} {
		if _, err := foreign(bad); err == nil {
			t.Errorf("%.5q was taken for a program", bad)
		}
	}
}

func waitingStatus(name, reason, message, last string) corev1.ContainerStatus {
	s := corev1.ContainerStatus{Name: name, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}}
	if last != "" {
		s.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{Message: last}
	}
	return s
}

// What the kubelet says of a container that cannot run is what the operator gets; what it has not tried often enough is no reason yet.
func TestWaitingPlugins(t *testing.T) {
	units := unitsOfPlugins([]string{"1", "2"})
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "kube-apiserver-cp-2", Labels: map[string]string{labelRevision: "4"}}}
	older := pod.DeepCopy()
	older.Labels[labelRevision] = "3"
	all := &corev1.PodList{Items: []corev1.Pod{*older, *pod}}
	if is := revisedPod(all, "kube-system", "kube-apiserver-cp-2", 4); is != &all.Items[1] {
		t.Errorf("revision 4 is %v", is)
	}
	if is := revisedPod(all, "kube-system", "kube-apiserver-cp-2", 5); is != nil {
		t.Errorf("revision 5 is %v", is)
	}
	running := corev1.ContainerStatus{Name: "vault-kms-plugin-1", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}
	for _, test := range []struct {
		status corev1.ContainerStatus
		want   string
	}{
		{running, ""},
		{waitingStatus("vault-kms-plugin-2", "PodInitializing", "", ""), ""},
		{waitingStatus("vault-kms-plugin-2", "ErrImagePull", "no such host", ""), ""},
		{waitingStatus("vault-kms-plugin-2", "ImagePullBackOff", `Back-off pulling image "x"`, ""), `2: ImagePullBackOff: Back-off pulling image "x"`},
		{waitingStatus("vault-kms-plugin-2", "InvalidImageName", "", ""), `2: InvalidImageName`},
		{waitingStatus("vault-kms-plugin-2", "CrashLoopBackOff", "back-off 10s", "{}\nexec format error\n"), "2: CrashLoopBackOff: back-off 10s: exec format error"},
		{waitingStatus("kms-health-reporter", "CrashLoopBackOff", "back-off 10s", ""), ""}, // it is no plugin
	} {
		pod.Status.InitContainerStatuses = []corev1.ContainerStatus{running, test.status}
		var got []string
		for _, w := range waitingPlugins(pod, units) {
			got = append(got, w.Plugin+": "+w.Reason)
		}
		if text := strings.Join(got, ", "); text != test.want {
			t.Errorf("%+v: %q, want %q", test.status.State, text, test.want)
		}
	}
}

// A container that has just been started may be one that ends at once.
func TestOutcomeOfATrial(t *testing.T) {
	now := time.Unix(100, 0)
	running := func(since time.Duration) []corev1.ContainerStatus {
		return []corev1.ContainerStatus{{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(now.Add(-since))}}}}
	}
	for what, test := range map[string]struct {
		all     []corev1.ContainerStatus
		waiting int
		clear   bool
	}{
		"no status":      {nil, 0, false},
		"creating":       {[]corev1.ContainerStatus{waitingStatus(trial, "ContainerCreating", "", "")}, 0, false},
		"has just begun": {running(runsFor), 0, false},
		"runs":           {running(2 * runsFor), 0, true},
		"cannot run":     {[]corev1.ContainerStatus{waitingStatus(trial, "CrashLoopBackOff", "", "")}, 1, true},
	} {
		waiting, unclear := outcomeOf(test.all, now)
		if len(waiting) != test.waiting || (unclear == nil) != test.clear {
			t.Errorf("%s: %v, %v", what, waiting, unclear)
		}
	}
}

// The start of a pod is given up when the kubelet says that a plugin cannot run, and only then.
func TestUnlessWaiting(t *testing.T) {
	waits := []live.WaitingContainer{{Name: "vault-kms-plugin-1", Plugin: "1", Reason: "CrashLoopBackOff"}}
	asked := make(chan struct{})
	never := func(ctx context.Context) ([]live.WaitingContainer, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	failed := errors.New("failed")
	for what, test := range map[string]struct {
		start func(context.Context) error
		look  func(context.Context) ([]live.WaitingContainer, error)
		want  []live.WaitingContainer
		err   error
	}{
		"starts":       {func(context.Context) error { return nil }, never, nil, nil},
		"fails":        {func(context.Context) error { return failed }, never, nil, failed},
		"waits":        {func(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) }, func(context.Context) ([]live.WaitingContainer, error) { return waits, nil }, waits, nil},
		"starts after": {func(context.Context) error { <-asked; return nil }, func(context.Context) ([]live.WaitingContainer, error) { close(asked); return nil, nil }, nil, nil},
	} {
		got, err := unlessWaiting(t.Context(), test.start, test.look)
		if len(got) != len(test.want) || !errors.Is(err, test.err) {
			t.Errorf("%s: %v, %v, want %v, %v", what, got, err, test.want, test.err)
		}
	}
}

// A kubelet that refuses to answer is no kubelet without pods.
func TestKubeletPods(t *testing.T) {
	answers := map[string]struct {
		code int
		text string
		ok   bool
	}{
		"pods":      {http.StatusOK, `{"kind":"PodList","items":[{"metadata":{"name":"kube-apiserver-cp-1"}}]}`, true},
		"forbidden": {http.StatusForbidden, "Forbidden (user=kubernetes-admin, verb=get, resource=nodes, subresource(s)=[pods])", false},
		"garbage":   {http.StatusOK, "[", false},
	}
	for what, a := range answers {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/pods" {
				t.Errorf("it was asked for %s", r.URL.Path)
			}
			w.WriteHeader(a.code)
			fmt.Fprint(w, a.text)
		}))
		pods, err := kubeletPods(t.Context(), server.URL, server.Client())
		if (err == nil) != a.ok || a.ok && len(pods.Items) != 1 {
			t.Errorf("%s: %v, %v", what, pods, err)
		}
		server.Close()
	}
}

// A static pod without a manifest ends in the kubelet some time after its containers.
func TestEndingStaticPods(t *testing.T) {
	const gauge = "# TYPE kubelet_working_pods gauge\n"
	for text, want := range map[string]int{
		"": 0,
		gauge + `kubelet_working_pods{config="desired",lifecycle="terminating",static="true"} 4` + "\n": 0,
		gauge + `kubelet_working_pods{config="orphan",lifecycle="terminated",static=""} 3` + "\n":       0,
		gauge + `kubelet_working_pods{config="orphan",lifecycle="terminating",static="true"} 1` + "\n" +
			`kubelet_working_pods{config="orphan",lifecycle="terminated",static="true"} 1` + "\n": 2,
		"{": -1,
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, text) }))
		n, err := endingStaticPods(t.Context(), server.URL, server.Client())
		if (err != nil) != (want < 0) || err == nil && n != want {
			t.Errorf("%q: %d, %v, expected %d", text, n, err, want)
		}
		server.Close()
	}
}

// A plugin for which the operator chose an image runs from it, and with a path that cannot be written where that is its fault.
func TestSpecWithImages(t *testing.T) {
	const chosen = "registry.example.com/kms/newer@sha256:11"
	for _, fault := range scenario.ImageFaults() {
		r := podRevision{number: 3, plugins: unitsOfPlugins([]string{"1", "2"}), images: map[string]live.PluginImage{unitOfPlugin("2"): {Reference: chosen, Fault: fault}}}
		s := spec(images{plugin: "p", reporter: "r"}, "lb", r)
		if s.Sidecars[0].Image != "p" || s.Sidecars[1].Image != chosen || s.Sidecars[0].StartupProbe != nil || s.Sidecars[1].StartupProbe == nil {
			t.Errorf("images %s, %s, probes %v, %v", s.Sidecars[0].Image, s.Sidecars[1].Image, s.Sidecars[0].StartupProbe, s.Sidecars[1].StartupProbe)
		}
		for i, c := range s.Sidecars[:2] {
			for _, m := range c.Mounts {
				if want := i == 1 && fault == scenario.ImageReadOnly && m.Name == volumeSocket; m.ReadOnly != want {
					t.Errorf("%s: mount %s of %s is read-only: %t", fault, m.Name, c.Name, m.ReadOnly)
				}
			}
		}
	}
}

// On one node nothing could tell the operator of another image.
func TestLackingImage(t *testing.T) {
	for _, test := range []struct {
		fault        string
		controlPlane int
		aggregated   []string
		plugin       string
		want         string
	}{
		{scenario.ImageMissing, 3, nil, "", ""},
		{scenario.ImageMissing, 1, nil, "", "on one node"},
		{scenario.ImageNone, 1, nil, "", ""},
		{scenario.ImageCrashLoop, 3, []string{"openshift-apiserver"}, "", "further API servers"},
		{scenario.ImageReadOnly, 3, nil, "mine:1", "plugin under test"},
	} {
		b := &Backend{}
		b.opts.Plugin.Image = test.plugin
		s := &scenario.Scenario{Topology: scenario.Topology{ControlPlanes: test.controlPlane, APIServers: append([]string{"kube-apiserver"}, test.aggregated...)},
			Steps: []scenario.Step{{Action: &scenario.Image{Image: "a", Fault: test.fault}}}}
		got := strings.Join(b.lackingImages(s), "; ")
		if (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
			t.Errorf("%+v: %q", test, got)
		}
	}
}
