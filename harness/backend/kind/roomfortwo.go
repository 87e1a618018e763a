package kind

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
)

// The kernel limits the inotify instances of one user, and all nodes of a machine share them: systemd, containerd, the kubelet and the
// pods of a node have 20 together. The kernel's default of 128 is enough for six nodes; in a seventh, systemd ends at once.
const (
	inotifyFile = "/proc/sys/fs/inotify/max_user_instances"
	// inotifyForTwo is enough for two clusters of three nodes, each with one more that replaces another, and for everything else
	// that the user runs.
	inotifyForTwo = 256
)

// processorsForTwo lets one cluster run scenarios in time while another is made. With two processors, reports of the first got stale
// meanwhile: after a pause of etcd two of three nodes wrote nothing for 4 s.
const processorsForTwo = 4

// HasRoomForTwo says whether the nodes of two clusters of three can run on this machine, or what to do about it. A machine whose
// limit cannot be read, because the engine is on another, is taken to have it.
func HasRoomForTwo() error {
	if n := runtime.NumCPU(); n < processorsForTwo {
		return fmt.Errorf("%d processors are enough for one cluster of three nodes and not for two: that takes %d", n, processorsForTwo)
	}
	text, err := os.ReadFile(inotifyFile)
	if err != nil {
		return nil
	}
	return roomForTwo(string(text))
}

func roomForTwo(limit string) error {
	n, err := strconv.Atoi(strings.TrimSpace(limit))
	if err != nil || n >= inotifyForTwo {
		return nil
	}
	return fmt.Errorf("fs.inotify.max_user_instances is %d: enough for one cluster of three nodes and not for two; sysctl -w fs.inotify.max_user_instances=512 (root) allows both", n)
}
