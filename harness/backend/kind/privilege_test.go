package kind

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/operator/sidecar"
)

// mayReach are the sockets that a user may connect to, of those that a listing of a container's files has: mode, user, group and path, a socket a line.
func mayReach(listing string, uid int) (paths []string, err error) {
	for line := range strings.Lines(listing) {
		var mode, user, group int
		var path string
		if _, err := fmt.Sscanf(line, "%o %d %d %s", &mode, &user, &group, &path); err != nil {
			return nil, fmt.Errorf("listing of sockets, line %q: %w", line, err)
		}
		allowed := mode & 0o002
		switch uid {
		case user:
			allowed = mode & 0o200
		case group: // a reporter's user and group have one number
			allowed = mode & 0o020
		}
		if allowed != 0 {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	return paths, nil
}

func TestSocketsThatAUserMayReach(t *testing.T) {
	const listing = "600 0 0 own\n660 0 65532 kms\n666 0 0 all\n600 65532 65532 mine\n60 65532 65532 not-mine\n"
	for uid, want := range map[int]string{65532: "all kms mine", 7: "all", 0: "all kms own"} {
		if got, err := mayReach(listing, uid); err != nil || strings.Join(got, " ") != want {
			t.Errorf("user %d: %v, %v, want %s", uid, got, err, want)
		}
	}
	if _, err := mayReach("no listing", 0); err == nil {
		t.Error("what is no listing was read")
	}
}

// holdsControl are the mounts with a control API in them that is not the reporter's own, or with files of others.
func holdsControl(mounts []sidecar.Mount, pod string) (bad []string) {
	own := podFiles{seen: pod}.of(unitReporter).seen
	for _, m := range mounts {
		for _, closed := range []string{pod, inNodeState, inNodeShared} {
			if inside := closed + "/"; m.HostPath != own && (inside == m.HostPath+"/" || strings.HasPrefix(inside, m.HostPath+"/")) {
				bad = append(bad, m.HostPath)
			}
		}
		if m.HostPath != own && !m.ReadOnly {
			bad = append(bad, m.HostPath+" (writable)")
		}
	}
	return bad
}

// A compromised reporter sees neither the control APIs of plugins and supervisors nor the files of anything beside it.
func TestWhatAReporterSeesOfItsNode(t *testing.T) {
	static := spec(images{plugin: "p", reporter: "r"}, "lb", podRevision{number: 1, plugins: pluginContainerUnits()}).Sidecars
	if bad := holdsControl(static[len(static)-1].Mounts, inNodeState); len(bad) > 0 {
		t.Errorf("static pod: %v", bad)
	}
	if bad := holdsControl(folders(), inNodeState); len(bad) < 3 {
		t.Errorf("the folders of the other containers were not found in the way: %v", bad)
	}
	_, pod := podOf(t, history.OAuthAPIServer, 1)
	i := slices.IndexFunc(pod.InitContainers, func(c corev1.Container) bool { return c.Name == containerName(unitReporter) })
	var mounts []sidecar.Mount
	for _, m := range pod.InitContainers[i].VolumeMounts {
		if !slices.ContainsFunc(pod.Volumes, func(v corev1.Volume) bool { return v.Name == m.Name }) {
			t.Errorf("there is no volume %s", m.Name)
		}
		mounts = append(mounts, sidecar.Mount{Name: m.Name, HostPath: m.MountPath, ReadOnly: m.ReadOnly})
	}
	if bad := holdsControl(mounts, inNodeState+"/"+history.OAuthAPIServer); len(bad) > 0 || len(mounts) != 3 {
		t.Errorf("pod of an aggregated API server: %v of %v", bad, mounts)
	}
}

// envKind asks for tests that make clusters.
const envKind = "KMSHARNESS_KIND"

// On a real node a reporter may connect to the plugins' KMS sockets and to the supervisor that runs it, and to nothing else. Plugins serve their sockets
// to their API server and to reporters only, in a folder that nobody else may change. Neither can write to the filesystem of its image.
func TestPrivilegesOfAReporter(t *testing.T) {
	if os.Getenv(envKind) == "" {
		t.Skipf("makes a kind cluster, which takes minutes: set %s=1", envKind)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	defer cancel()
	cluster, err := Boot(ctx, BootOptions{ControlPlanes: 1, KeyIDs: []string{"1"}, Logs: t.TempDir(), Progress: func(l string) { t.Log(l) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	node := cluster.controlPlane.container(nodeName(1))
	// sockets lists those that a process sees, in its own mount namespace.
	sockets := func(program string) []string {
		t.Helper()
		listing, err := node.exec(ctx, "sh", "-c", `find "/proc/$(pgrep -xo "$0")/root/var" -type s -printf '%m %U %G %P\n'`, program)
		if err != nil {
			t.Fatal(err)
		}
		paths, err := mayReach(listing, uidReporter)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("sockets that %s sees, and that a reporter may connect to: %q\n%s", program, paths, listing)
		return paths
	}
	const reporter, plugin = "kms-health-repo", "fake-kms-plugin" // the kernel keeps 15 bytes of a name
	own, kms := "lib/kmsharness/reporter/reporter.sock", "run/kmsplugin/kms-1.sock"
	if got := sockets(reporter); !slices.Equal(got, []string{own, kms}) {
		t.Errorf("the reporter reaches %v, expected its own supervisor and the plugin: %v", got, []string{own, kms})
	}
	// The known-bad subject: with the folders of a plugin's container it would reach a supervisor of the plugins.
	if got := sockets(plugin); !slices.Contains(got, "lib/kmsharness/plugin-1.sock") {
		t.Errorf("with the folders of a plugin it would reach %v, expected lib/kmsharness/plugin-1.sock among them", got)
	}
	// No sidecar can change what is in its image. The API server can, so the probe is one that can fail.
	for program, want := range map[string]bool{reporter: false, plugin: false, "kube-apiserver": true} {
		text, err := node.exec(ctx, "sh", "-c", `touch "/proc/$(pgrep -xo "$0")/root/probe" 2>&1 || true`, program)
		if err != nil {
			t.Fatal(err)
		}
		if got := text == ""; got != want || !want && !strings.Contains(text, "Read-only file system") {
			t.Errorf("%s can write to its root filesystem: %t (%s), expected %t", program, got, text, want)
		}
	}
	served := func() string {
		t.Helper()
		text, err := node.exec(ctx, "stat", "--format", "%a %u:%g", inNodeSocket, inNodeSocket+"/kms-1.sock")
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(strings.Split(text, "\n"), ", ")
	}
	folder := fmt.Sprintf("755 %d:%d", os.Getuid(), os.Getgid())
	want := folder + ", 660 0:" + strconv.Itoa(uidReporter)
	if got := served(); got != want {
		t.Errorf("folder and socket of the plugin: %s, expected %s", got, want)
	}
	open := &scenario.Inject{Plugin: scenario.Selector{Node: nodeName(1)}, Fault: "socket-permissions", Params: map[string]any{"mode": "0666"}}
	if err := cluster.Environment().Do(ctx, open); err != nil {
		t.Fatal(err)
	}
	if got := served(); got == want {
		t.Errorf("a socket that is open to everybody was not found: %s", got)
	}
}
