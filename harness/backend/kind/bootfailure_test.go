package kind

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/harness/backend"
	"github.com/kmsharness/kmsharness/harness/backend/live"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

// failedPlane is one of which a node and the load balancer were made.
func failedPlane(t *testing.T) *controlPlane {
	t.Helper()
	b := bootSpec{name: "k", dir: t.TempDir(), runDir: t.TempDir(), shape: shape{nodes: 1}, programs: live.NewPrograms(t.TempDir(), func(string) {}), progress: func(string) {}}
	p := newControlPlane(b)
	t.Cleanup(func() {
		if err := p.Supervisor.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	if err := (&booting{bootSpec: b, p: p, names: []string{"cp-1"}}).prepareFolders(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(p.layout.node("cp-1").file(logFile(unitAPIServer)), []byte("etcd is away\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return p
}

// A boot that failed leaves what tells why, and what one part lacks does not keep the others.
func TestExplain(t *testing.T) {
	fakeDocker(t, `case "$*" in
*"ps --filter"*) echo k-control-plane; echo k-external-load-balancer;;
*journalctl*) echo 'E1123 03:00:02.2 200 log.go:32] "PullImage from image service failed" err="failed to pull image: not found"';;
*crictl*) echo 'no such socket' >&2; exit 1;;
cp*) mkdir "$3"; echo apiserver >"$3/kube-apiserver.yaml";;
*) echo "$1";;
esac
`)
	dir := filepath.Join(t.TempDir(), "boot-1")
	cause := explain(t.Context(), failedPlane(t), errors.New("it did not come up"), dir)
	if want := "an image is missing (k-control-plane/kubelet.log: E1123"; !strings.HasPrefix(cause, want) {
		t.Errorf("cause %q, want %q", cause, want)
	}
	for file, want := range map[string]string{
		"error": "it did not come up", "k-control-plane/kubelet.log": "PullImage", "k-control-plane/containers.txt": "no such socket", "k-control-plane/containers.log": "exec",
		"k-control-plane/manifests/kube-apiserver.yaml": "apiserver", "k-control-plane/console.log": "logs", "k-external-load-balancer/console.log": "logs",
		"engine-ps.txt": "ps", "engine-events.txt": "events", "machine.txt": "inotify", "cp-1-apiserver.log": "etcd is away",
	} {
		text, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s: %q, %v; want %q", file, text, err, want)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "k-external-load-balancer", sourceKubelet)); err == nil {
		t.Error("the load balancer was asked for a kubelet")
	}
}

// An engine that does not answer costs the time that there is for a part, and the error is kept.
func TestExplainWithoutAnEngine(t *testing.T) {
	fakeDocker(t, "echo 'no such engine' >&2; exit 1\n")
	dir := filepath.Join(t.TempDir(), "boot-1")
	if cause := explain(t.Context(), failedPlane(t), errors.New("it did not come up"), dir); cause != "it did not come up" {
		t.Errorf("cause %q", cause)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "containers-unknown.txt")); err != nil || !strings.Contains(string(text), "no such engine") {
		t.Errorf("%q, %v", text, err)
	}
}

// TestAClusterIsBootedOnceMore boots a cluster whose nodes lack an image, and then one that has it. It takes five minutes.
func TestAClusterIsBootedOnceMore(t *testing.T) {
	if os.Getenv("KMSHARNESS_KIND") == "" {
		t.Skip("KMSHARNESS_KIND=1 makes clusters, on a machine with an engine and a node image")
	}
	b, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	boots := 0
	b.tamper = func(s *bootSpec) {
		if boots++; boots == 1 {
			s.archives.images.reporter = "localhost/no-such-reporter:1"
		}
	}
	t.Cleanup(func() {
		if err := b.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	out := t.TempDir()
	if kept := os.Getenv("KMSHARNESS_OUT"); kept != "" {
		out = kept
	}
	var causes []string
	s := scenario.Scenario{Name: "booted-once-more", Topology: scenario.Topology{ControlPlanes: 1}}.WithDefaults()
	began := time.Now()
	e, err := b.Prepare(t.Context(), backend.Spec{Scenario: s, Log: history.NewLog(nil), OutDir: out,
		Progress:   func(line string) { t.Logf("%4.0fs %s", time.Since(began).Seconds(), line) },
		FailedBoot: func(cause string) { causes = append(causes, cause) }})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = e.Release(context.Background(), false) }()
	if boots != 2 || len(causes) != 1 || !strings.Contains(causes[0], "an image is missing") || !strings.Contains(causes[0], "no-such-reporter") {
		t.Errorf("%d boots, causes %q", boots, causes)
	}
	for _, pattern := range []string{"error", "*/kubelet.log", "*/containers.txt", "*/containers.log", "*/manifests/kube-apiserver.yaml", "engine-events.txt", "cp-1-*.log"} {
		if found, err := filepath.Glob(filepath.Join(out, "boot-1", pattern)); err != nil || len(found) == 0 {
			t.Errorf("boot-1 has no %s (%v)", pattern, err)
		}
	}
}

func TestLikelyCause(t *testing.T) {
	const reflector = `Nov 23 03:00:01 k kubelet[200]: E1123 03:00:01.1 200 reflector.go:204] "Failed to watch" err="connection refused"`
	const crash = `Nov 23 03:00:02 k kubelet[200]: E1123 03:00:02.2 200 pod_workers.go:1324] "Error syncing pod, skipping" err="failed to \"StartContainer\" for \"reporter\" with CrashLoopBackOff: \"back-off 10s restarting failed container=reporter pod=kube-apiserver-cp-1_kube-system(77)\"" pod="kube-system/kube-apiserver-cp-1"`
	const logs = "==> /var/log/pods/kube-system_etcd-cp-1_5/etcd/0.log\nready\n==> /var/log/pods/kube-system_kube-apiserver-cp-1_77/reporter/1.log\nstarting\nflag: unknown flag --x\n\n==> /var/log/pods/kube-system_kube-proxy_6/kube-proxy/0.log\nsynced\n"
	kubelet := func(lines ...string) source {
		return source{"k-control-plane/" + sourceKubelet, strings.Join(lines, "\n") + "\n"}
	}
	failed := source{sourceError, "wait for the API server: context deadline exceeded\nmore"}
	for name, c := range map[string]struct {
		said []source
		want string
	}{
		"nothing known":           {nil, "unknown"},
		"only the error":          {[]source{failed}, "wait for the API server: context deadline exceeded"},
		"a kubelet's last error":  {[]source{failed, kubelet("I1123 03:00:00.0 fine", reflector, "I1123 03:00:03.0 fine")}, `unknown; the last error of a kubelet is k-control-plane/kubelet.log: Nov 23 03:00:01 k kubelet[200]: E1123`},
		"an error of a container": {[]source{failed, {"k/" + sourceContainers, "E1123 03:00:01.1 1 leaderelection.go:448] error"}}, "wait for the API server"},
		"disk":                    {[]source{{sourceError, "write /x: no space left on device"}}, "the disk is full (error: write /x: no space left on device)"},
		"inotify":                 {[]source{failed, kubelet(`E1123 03:00:01.1 "command failed" err="inotify_init: too many open files"`)}, "an inotify limit is reached"},
		"inotify, no room":        {[]source{failed, kubelet(`E1123 03:00:01.1 inotify_add_watch /etc/kubernetes/manifests: no space left on device`)}, "an inotify limit is reached"},
		// A healthy kubelet writes this when a pod ends while it is about to watch it.
		"a cgroup that has gone":  {[]source{failed, kubelet(`W1123 03:47:54.679524 642 watcher.go:95] Error while processing event ("/sys/fs/cgroup/devices/kubelet.slice/pod9.slice": 0x40000100 == IN_CREATE|IN_ISDIR): inotify_add_watch /sys/fs/cgroup/devices/kubelet.slice/pod9.slice: no such file or directory`)}, "wait for the API server"},
		"far in a line":           {[]source{failed, kubelet(strings.Repeat("x", 500) + ` ErrImagePull: failed to pull image "far"`)}, "an image is missing (k-control-plane/kubelet.log: … " + strings.Repeat("x", 99) + ` ErrImagePull: failed to pull image "far")`},
		"memory":                  {[]source{failed, {"engine-events.txt", "2026-11-23T03:00:00Z container oom 55aa (name=k-control-plane)"}}, "the machine has too little memory"},
		"port":                    {[]source{{sourceError, "Bind for 127.0.0.1:6443 failed: port is already allocated"}}, "a port is taken"},
		"image":                   {[]source{failed, kubelet(reflector, `E1123 03:00:02.2 200 log.go:32] "PullImage from image service failed" err="failed to pull and unpack image \"docker.io/library/plugin:none\": not found"`)}, "an image is missing (k-control-plane/kubelet.log: "},
		"node image":              {[]source{{sourceError, "Unable to find image 'kindest/node:none' locally"}}, "an image is missing"},
		"cgroups":                 {[]source{failed, kubelet(`E1123 03:00:01.1 kubelet.go:1703] "Failed to start ContainerManager" err="cannot enter cgroupv2"`)}, "cgroups do not work"},
		"crash loop":              {[]source{failed, kubelet(crash, reflector), {"k/" + sourceContainers, logs}}, "the container reporter of kube-apiserver-cp-1 ends again and again; its last line: flag: unknown flag --x"},
		"crash loop, no log":      {[]source{failed, kubelet(crash)}, "the container reporter of kube-apiserver-cp-1 ends again and again"},
		"kubelet ends":            {[]source{{sourceError, "[kubelet-check] The kubelet is not healthy after 4m0s"}, kubelet(`E1123 03:00:01.1 run.go:72] "command failed" err="failed to load kubelet config file"`)}, "the kubelet ends (k-control-plane/kubelet.log"},
		"kubelet does not run":    {[]source{{sourceError, "[kubelet-check] The kubelet is not healthy after 4m0s"}}, "the kubelet does not run"},
		"etcd":                    {[]source{failed, {"k/" + sourceContainers, `{"level":"warn","msg":"failed to publish local member to cluster through raft","error":"etcdserver: request timed out"}`}}, "etcd was too slow"},
		"kubelet deletes nothing": {[]source{failed, kubelet(reflector, `E1123 03:00:04.4 "Failed to delete pod" err="skipping delete because sources aren't ready yet"`)}, "a kubelet has had no answer from an API server"},
	} {
		got := likelyCause(c.said)
		if !strings.HasPrefix(got, c.want) || strings.Contains(got, "\n") {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	if got := likelyCause([]source{{sourceError, strings.Repeat("é", 1000)}}); len(got) > 310 {
		t.Errorf("a line of %d bytes", len(got))
	}
}
