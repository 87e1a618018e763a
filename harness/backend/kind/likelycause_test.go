package kind

import (
	"strings"
	"testing"
)

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
