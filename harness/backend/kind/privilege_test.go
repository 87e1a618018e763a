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

// mayReach are the sockets that a user may connect to, of those that a listing of a container's files has: type, mode, user, group and path, a socket or
// a folder a line, a folder before what is in it.
func mayReach(listing string, uid int) (paths []string, err error) {
	var closed []string
	for line := range strings.Lines(listing) {
		var kind, path string
		var mode, user, group int
		if _, err := fmt.Sscanf(line, "%s %o %d %d %s", &kind, &mode, &user, &group, &path); err != nil {
			return nil, fmt.Errorf("listing of sockets, line %q: %w", line, err)
		}
		bit := map[string]int{"s": 0o002, "d": 0o001}[kind] // to write to a socket, to enter a folder
		switch uid {
		case user:
			bit <<= 6
		case group: // a reporter's user and group have one number
			bit <<= 3
		}
		inClosed := slices.ContainsFunc(closed, func(dir string) bool { return strings.HasPrefix(path, dir+"/") })
		switch {
		case kind == "d" && mode&bit == 0:
			closed = append(closed, path)
		case kind == "s" && mode&bit != 0 && !inClosed:
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	return paths, nil
}

func TestSocketsThatAUserMayReach(t *testing.T) {
	const listing = "s 600 0 0 own\ns 660 0 65532 kms\ns 666 0 0 all\ns 600 65532 65532 mine\ns 60 65532 65532 not-mine\nd 770 0 0 roots\ns 666 0 0 roots/s\n"
	for uid, want := range map[int]string{65532: "all kms mine", 7: "all", 0: "all kms own roots/s"} {
		if got, err := mayReach(listing, uid); err != nil || strings.Join(got, " ") != want {
			t.Errorf("user %d: %v, %v, want %s", uid, got, err, want)
		}
	}
	if _, err := mayReach("no listing", 0); err == nil {
		t.Error("what is no listing was read")
	}
}

// holdsControl are the mounts with a control API in them, or with files of others, and those that are writable and not the unit's own.
func holdsControl(mounts []sidecar.Mount, pod string, own ...string) (bad []string) {
	for _, m := range mounts {
		for _, closed := range []string{pod, inNodeState, inNodeShared} {
			if inside := closed + "/"; strings.HasPrefix(inside, m.HostPath+"/") {
				bad = append(bad, m.HostPath)
			}
		}
		if !m.ReadOnly && !slices.Contains(own, m.HostPath) {
			bad = append(bad, m.HostPath+" (writable)")
		}
	}
	return bad
}

// keepsOut reports whether a container has a supervisor that is root and a program that is not.
func keepsOut(command []string, s *corev1.SecurityContext) bool {
	i := slices.Index(command, "--user")
	return i > 0 && !strings.HasPrefix(command[i+1], "0:") && *s.RunAsUser == 0 && !*s.AllowPrivilegeEscalation && s.Capabilities.Drop[0] == "ALL"
}

// A plugin under test sees its sockets and its files, and of others nothing but the program of its supervisor.
func TestWhatAPluginUnderTestSeesOfItsNode(t *testing.T) {
	img := images{plugin: "p", reporter: "r", pluginUnderTest: "mine"}
	c := spec(img, "lb", podRevision{number: 1, plugins: []string{"plugin-1"}}).Sidecars[1]
	own := []string{inNode("plugin-1-under-test"), inNode("real"), inNode("plugin-state"), inNodeShared + "/plugin-shared"}
	if bad := holdsControl(c.Mounts, inNodeState, own...); len(bad) > 0 || len(c.Mounts) != 5 || !keepsOut(c.Command, c.SecurityContext) {
		t.Errorf("static pod: %v of %v, %v, %v", bad, c.Mounts, c.Command, c.SecurityContext)
	}
	dir := inNode(history.OAuthAPIServer)
	pod := deploymentOf(standOf(t, history.OAuthAPIServer), img, "cp-1", portsOf(0), podRevision{number: 1, plugins: []string{"plugin-1"}}).Spec.Template.Spec
	own = []string{dir + "/plugin-1-under-test", dir + "/real", dir + "/plugin-state", inNodeShared + "/plugin-shared"}
	behind := pod.InitContainers[1]
	if bad := holdsControl(volumesOf(t, pod, behind), dir, own...); len(bad) > 0 || !keepsOut(behind.Command, behind.SecurityContext) {
		t.Errorf("pod of an aggregated API server: %v of %v, %v, %v", bad, behind.VolumeMounts, behind.Command, behind.SecurityContext)
	}
}

// Aggregators and an operator under test see what they read, and of others nothing but the program of their supervisors.
func TestWhatADeploymentSees(t *testing.T) {
	for _, role := range deployedRoles() {
		pod := newDeployment("d", role, 1, "", nil).object("i").Spec.Template.Spec
		c := pod.Containers[0]
		if bad := holdsControl(volumesOf(t, pod, c), inNodeState, inNodeShared+"/"+role); len(bad) > 0 || len(c.VolumeMounts) != 3 || !keepsOut(c.Command, c.SecurityContext) {
			t.Errorf("%s: %v of %v, %v, %v", role, bad, c.VolumeMounts, c.Command, c.SecurityContext)
		}
	}
}

// volumesOf are what a container mounts of its node, each where it is there.
func volumesOf(t *testing.T, pod corev1.PodSpec, c corev1.Container) (mounts []sidecar.Mount) {
	t.Helper()
	for _, m := range c.VolumeMounts {
		i := slices.IndexFunc(pod.Volumes, func(v corev1.Volume) bool { return v.Name == m.Name })
		if i < 0 || pod.Volumes[i].HostPath != nil && pod.Volumes[i].HostPath.Path != m.MountPath {
			t.Errorf("no volume %s at %s among %v", m.Name, m.MountPath, pod.Volumes)
		}
		mounts = append(mounts, sidecar.Mount{Name: m.Name, HostPath: m.MountPath, ReadOnly: m.ReadOnly})
	}
	return mounts
}

// A compromised reporter sees neither the control APIs of plugins and supervisors nor the files of anything beside it.
func TestWhatAReporterSeesOfItsNode(t *testing.T) {
	static := spec(images{plugin: "p", reporter: "r"}, "lb", podRevision{number: 1, plugins: pluginContainerUnits()}).Sidecars
	reporter := static[len(static)-1]
	if bad := holdsControl(reporter.Mounts, inNodeState, inNode(unitReporter)); len(bad) > 0 || !keepsOut(reporter.Command, reporter.SecurityContext) {
		t.Errorf("static pod: %v, %v, %v", bad, reporter.Command, reporter.SecurityContext)
	}
	if keepsOut(static[0].Command, static[0].SecurityContext) {
		t.Error("a program that is the supervisor's user was not found")
	}
	if bad := holdsControl(folders(inNodeState), inNodeState); len(bad) < 3 {
		t.Errorf("the folders of the other containers were not found in the way: %v", bad)
	}
	_, pod := podOf(t, history.OAuthAPIServer, 1)
	i := slices.IndexFunc(pod.InitContainers, func(c corev1.Container) bool { return c.Name == containerName(unitReporter) })
	mounts := volumesOf(t, pod, pod.InitContainers[i])
	if bad := holdsControl(mounts, inNode(history.OAuthAPIServer), inNode(history.OAuthAPIServer+"/"+unitReporter)); len(bad) > 0 || len(mounts) != 4 {
		t.Errorf("pod of an aggregated API server: %v of %v", bad, mounts)
	}
}

// envKind asks for tests that make clusters.
const envKind = "KMSHARNESS_KIND"

// On a real node a reporter may connect to the plugins' KMS sockets, and to nothing else. Plugins serve their sockets
// to their API server and to reporters only, in a folder that nobody else may change. Neither can write to the filesystem of its image.
func TestPrivilegesOfAReporter(t *testing.T) {
	if os.Getenv(envKind) == "" {
		t.Skipf("makes a kind cluster, which takes minutes: set %s=1", envKind)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	defer cancel()
	cluster, err := Boot(ctx, BootOptions{ControlPlanes: 1, KeyIDs: []string{"1"}, Progress: func(l string) { t.Log(l) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	node := cluster.controlPlane.container("cp-1")
	// sockets lists those that a process sees, in its own mount namespace.
	sockets := func(program string) []string {
		t.Helper()
		listing, err := node.exec(ctx, "sh", "-c", `find "/proc/$(pgrep -xo "$0")/root/var" -mindepth 1 \( -type s -o -type d \) -printf '%y %m %U %G %P\n'`, program)
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
	const kms = "run/kmsplugin/kms-1.sock"
	if got := sockets(reporter); !slices.Equal(got, []string{kms}) {
		t.Errorf("the reporter reaches %v, expected the plugin: %s", got, kms)
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
	open := &scenario.Inject{Plugin: scenario.Selector{Node: "cp-1"}, Fault: "socket-permissions", Params: map[string]any{"mode": "0666"}}
	if err := cluster.Environment().Do(ctx, open); err != nil {
		t.Fatal(err)
	}
	if got := served(); got == want {
		t.Errorf("a socket that is open to everybody was not found: %s", got)
	}
}
