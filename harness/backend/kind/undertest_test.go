package kind

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kmsharness/kmsharness/harness/cluster"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/undertest"
	"github.com/kmsharness/kmsharness/operator/sidecar"
)

// underTestIn is the unit of a plugin under test, behind the fake plugin in a container.
func underTestIn(dir, unit string) *cluster.Fronted {
	return &cluster.Fronted{Unit: &held{unitKey: unitKey{dir, unitUnderTest(unit)}}, Front: &held{unitKey: unitKey{dir, unit}}}
}

// podUnderTest is the pod of cp-1 with containers for a plugin under test, with its plugins as the backend makes them.
func podUnderTest(t *testing.T, apiServer string) (*controlPlane, *podPlugins, podFiles) {
	t.Helper()
	programs := cluster.NewPrograms(t.TempDir(), func(string) {})
	programs.Plugin = undertest.Plugin{Image: "p:dev", Command: "/p --listen {endpoint} --keys {shared} --state {state} --node {node}"}
	programs.PluginArgs = []string{"--fault=hang"}
	dir, err := os.MkdirTemp("", "kms") // a test's own directory has too long a name for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	p := newControlPlane(bootSpec{dir: dir, programs: programs, archives: archives{images: images{pluginUnderTest: "p:dev"}}})
	t.Cleanup(func() {
		if err := errors.Join(p.Supervisor.Close(context.Background()), p.units.journals.Close()); err != nil {
			t.Error(err)
		}
	})
	f := p.layout.node("cp-1").pod(apiServer)
	if err := errors.Join(f.make(), os.MkdirAll(p.layout.pluginsUnderTest().dir, 0o700)); err != nil {
		t.Fatal(err)
	}
	return p, p.pluginsOf(apiServer, "cp-1", &p.profile, pluginContainerUnits(), func(string) string { return "" }), f
}

func commandIn(t *testing.T, f podFiles, unit string) []string {
	t.Helper()
	text, err := os.ReadFile(f.of(unit).file(commandFile(unit)))
	if err != nil {
		t.Fatal(err)
	}
	var words []string
	if err := json.Unmarshal(text, &words); err != nil {
		t.Fatal(err)
	}
	return words
}

// The plugin under test has a container behind each fake plugin, of its own image and below the supervisor.
func TestSpecWithAPluginUnderTest(t *testing.T) {
	s := spec(images{plugin: "p", reporter: "r", pluginUnderTest: "mine"}, "lb", podRevision{number: 1, plugins: pluginContainerUnits()})
	var got []string
	for _, c := range s.Sidecars {
		got = append(got, c.Name+"="+c.Image)
	}
	want := []string{"vault-kms-plugin-1=p", "vault-kms-plugin-1-under-test=mine", "vault-kms-plugin-2=p", "vault-kms-plugin-2-under-test=mine",
		"vault-kms-plugin-3=p", "vault-kms-plugin-3-under-test=mine", "kms-health-reporter=r"}
	if !slices.Equal(got, want) {
		t.Errorf("sidecars %v, want %v", got, want)
	}
	c := s.Sidecars[1]
	if words := strings.Join(c.Command, " "); !strings.HasPrefix(words, "/var/lib/kmsharness-shared/kmsharness-supervisor ") ||
		!strings.HasSuffix(words, "--command /var/lib/kmsharness/plugin-1-under-test/plugin-1-under-test.json") {
		t.Errorf("command %s", words)
	}
	server := corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: sidecar.APIServerContainer, Command: []string{"kube-apiserver"}}}}}
	if injected, err := sidecar.Inject(&server, s); err != nil || len(injected.Spec.InitContainers) != len(want) {
		t.Errorf("%+v, %v", injected, err)
	}
	pod := deploymentOf(standOf(t, history.OAuthAPIServer), images{pluginUnderTest: "mine"}, "cp-1", portsOf(0), podRevision{number: 1, plugins: pluginContainerUnits()}).Spec.Template.Spec
	if !slices.ContainsFunc(pod.InitContainers, func(c corev1.Container) bool { return c.Name == "vault-kms-plugin-3-under-test" && c.Image == "mine" }) {
		t.Error("the pod of an aggregated API server has no container for it")
	}
}

// The paths of a plugin under test are those of its pod. It waits for its first start, and the fake plugin in front of it does not.
func TestCommandsOfAPluginUnderTest(t *testing.T) {
	for apiServer, want := range map[string]string{
		"": "/p --listen unix:///var/lib/kmsharness/real/real-2.sock --keys /var/lib/kmsharness-shared/plugin-shared/2 --state /var/lib/kmsharness/plugin-state/cp-1-2 --node cp-1",
		history.OAuthAPIServer: "/p --listen unix:///var/lib/kmsharness/oauth-apiserver/real/real-2.sock --keys /var/lib/kmsharness-shared/plugin-shared/oauth-apiserver-2 " +
			"--state /var/lib/kmsharness/oauth-apiserver/plugin-state/oauth-apiserver-cp-1-2 --node cp-1",
	} {
		p, plugins, f := podUnderTest(t, apiServer)
		n := &cluster.Node{Name: "cp-1"}
		if err := plugins.prepare(t.Context(), n, []string{"2"}); err != nil {
			t.Fatal(err)
		}
		words := strings.Join(commandIn(t, f, "plugin-2"), " ")
		upstream, _, _ := strings.Cut(strings.TrimPrefix(want, "/p --listen "), " ")
		if !strings.HasPrefix(words, "/fake-kms-plugin serve --listen=unix:///var/run/kmsplugin/kms-2.sock ") || !strings.Contains(words, " --upstream="+upstream+" ") ||
			!strings.HasSuffix(words, " --socket-mode=0660 --fault=hang") || strings.Contains(words, "--remote") {
			t.Errorf("front %s", words)
		}
		if _, err := os.Stat(f.of("plugin-2-under-test").file(commandFile("plugin-2-under-test"))); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("a command before its first start: %v", err)
		}
		plugin, front := heldBy(n.Plugin("2").Unit)
		if plugin.unit != "plugin-2-under-test" || front.unit != "plugin-2" {
			t.Errorf("units %s and %s", plugin.unit, front.unit)
		}
		if err := plugin.writeCommand(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(commandIn(t, f, "plugin-2-under-test"), " "); got != want {
			t.Errorf("plugin %s\nwant   %s", got, want)
		}
		for _, dir := range []string{f.file("real"), filepath.Join(p.layout.shared(), "plugin-shared"), f.file("plugin-state")} {
			if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
				t.Errorf("folder %s: %v, %v: others can reach it", dir, info, err)
			}
		}
	}
}

// The history has the process of the plugin under test, and not that of the fake plugin in front of it.
func TestWhoIsThePluginUnderTest(t *testing.T) {
	p, plugins, f := podUnderTest(t, "")
	var recorded []string
	p.Listen(func(_ time.Time, payload any) {
		if one, ok := payload.(*history.Process); ok {
			recorded = append(recorded, cluster.NameOf(*one)+" "+one.State)
		}
	})
	n := &cluster.Node{Name: "cp-1"}
	if err := plugins.prepare(t.Context(), n, []string{"1"}); err != nil {
		t.Fatal(err)
	}
	for unit, state := range map[string]string{"plugin-1": history.ProcessKilled, "plugin-1-under-test": history.ProcessStarted} {
		line := `{"time":"2026-11-22T10:00:00Z","state":"` + state + `","pid":7}` + "\n"
		if err := os.WriteFile(f.of(unit).file(supervisorJournal(unit)), []byte(line), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.units.journals.Poll(); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(recorded, ", "); got != "plugin-cp-1-1 started" {
		t.Errorf("recorded %s", got)
	}
}

// An image that the engine does not have is named with its flag.
func TestPluginImage(t *testing.T) {
	fakeDocker(t, `[ "$1" = save ] || [ "$5" = p:dev ] || { echo "No such image: $5" >&2; exit 1; }; echo null`+"\n")
	dir := t.TempDir()
	var a archives
	if err := a.takeUnderTest(t.Context(), pluginImage("p:dev"), dir); err != nil || a.images.pluginUnderTest != "p:dev" || !slices.Equal(a.files, []string{dir + "/plugin-under-test.tar"}) {
		t.Errorf("%+v, %v", a, err)
	}
	if err := a.takeUnderTest(t.Context(), pluginImage("none"), dir); err == nil || !strings.HasPrefix(err.Error(), "plugin.image: ") || !strings.HasSuffix(err.Error(), "build it or pull it first") {
		t.Error(err)
	}
}

func pluginImage(image string) *undertest.System {
	return &undertest.System{Plugin: undertest.Plugin{Image: image}}
}
