package kind

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/kmsharness/kmsharness/harness/cluster"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

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

// The start of a pod is given up when the kubelet says that a plugin cannot run, and only then.
func TestUnlessWaiting(t *testing.T) {
	waits := []cluster.WaitingContainer{{Name: "vault-kms-plugin-1", Plugin: "1", Reason: "CrashLoopBackOff"}}
	asked := make(chan struct{})
	never := func(ctx context.Context) ([]cluster.WaitingContainer, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	failed := errors.New("failed")
	for what, test := range map[string]struct {
		start func(context.Context) error
		look  func(context.Context) ([]cluster.WaitingContainer, error)
		want  []cluster.WaitingContainer
		err   error
	}{
		"starts":       {func(context.Context) error { return nil }, never, nil, nil},
		"fails":        {func(context.Context) error { return failed }, never, nil, failed},
		"waits":        {func(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) }, func(context.Context) ([]cluster.WaitingContainer, error) { return waits, nil }, waits, nil},
		"starts after": {func(context.Context) error { <-asked; return nil }, func(context.Context) ([]cluster.WaitingContainer, error) { close(asked); return nil, nil }, nil, nil},
	} {
		got, err := unlessWaiting(t.Context(), test.start, test.look)
		if len(got) != len(test.want) || !errors.Is(err, test.err) {
			t.Errorf("%s: %v, %v, want %v, %v", what, got, err, test.want, test.err)
		}
	}
}

// A kubelet that refuses to answer is no kubelet without pods.
func clientOf(t *testing.T, s *httptest.Server) *cluster.Client {
	t.Helper()
	c, err := cluster.NewClient(&rest.Config{Host: s.URL})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

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
		pods, err := kubeletPods(t.Context(), clientOf(t, server))
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
		n, err := endingStaticPods(t.Context(), clientOf(t, server))
		if (err != nil) != (want < 0) || err == nil && n != want {
			t.Errorf("%q: %d, %v, expected %d", text, n, err, want)
		}
		server.Close()
	}
}

// A plugin for which the operator chose an image runs from it.
func TestSpecWithImages(t *testing.T) {
	const chosen = "registry.example.com/kms/newer@sha256:11"
	r := podRevision{number: 3, plugins: unitsOfPlugins([]string{"1", "2"}), images: map[string]string{unitOfPlugin("2"): chosen}}
	s := spec(images{plugin: "p", reporter: "r"}, "lb", r)
	if s.Sidecars[0].Image != "p" || s.Sidecars[1].Image != chosen || s.Sidecars[0].StartupProbe != nil || s.Sidecars[1].StartupProbe == nil {
		t.Errorf("images %s, %s, probes %v, %v", s.Sidecars[0].Image, s.Sidecars[1].Image, s.Sidecars[0].StartupProbe, s.Sidecars[1].StartupProbe)
	}
}

// On one node nothing could tell the operator of another image.
func TestLackingImage(t *testing.T) {
	const gone = "missing.invalid/kms/newer@sha256:11"
	for _, test := range []struct {
		image        string
		controlPlane int
		aggregated   []string
		plugin       string
		want         string
	}{
		{gone, 3, nil, "", ""},
		{gone, 1, nil, "", "on one node"},
		{"registry.example.com/kms/newer@sha256:11", 1, nil, "", ""},
		{gone, 3, []string{"openshift-apiserver"}, "", "further API servers"},
		{gone, 3, nil, "mine:1", "plugin under test"},
	} {
		b := &Backend{}
		b.opts.Plugin.Image = test.plugin
		s := &scenario.Scenario{Topology: scenario.Topology{ControlPlanes: test.controlPlane, APIServers: append([]string{"kube-apiserver"}, test.aggregated...)},
			Steps: []scenario.Step{{Action: &scenario.APIServer{Sections: map[string]map[string]any{"vault": {"kmsPluginImage": test.image}}}}}}
		got := strings.Join(b.lackingImages(s), "; ")
		if (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
			t.Errorf("%+v: %q", test, got)
		}
	}
}
