package kind

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/kmsharness/kmsharness/harness/backend/live"
	"github.com/kmsharness/kmsharness/harness/backend/operand"
	"github.com/kmsharness/kmsharness/harness/cluster"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/netfault"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

// Unsupported implements backend.Backend.
func (b *Backend) Unsupported(s *scenario.Scenario) []string {
	var lacks []string
	add := func(format string, args ...any) { lacks = append(lacks, fmt.Sprintf(format, args...)) }
	if s.Topology.ControlPlanes > maxNodes {
		add("%d control-plane nodes: each is a container of 400 MB, at most %d were tried", s.Topology.ControlPlanes, maxNodes)
	}
	if c := s.Topology.Connectivity; history.AnyAPIServer(c) && c != history.ConnectStream && s.Topology.ControlPlanes == 1 {
		add("connectivity %s: there is no load balancer before a single node", s.Topology.Connectivity)
	}
	if s.Topology.Advertises() && s.Topology.ControlPlanes == 1 {
		add("API servers that send Alt-Svc: there is no load balancer before a single node, which leads to what sends it")
	}
	if slices.ContainsFunc(s.Actions(), func(a scenario.Action) bool { _, ok := a.(*scenario.Memory); return ok }) {
		add("memory: the ids of processes are those of their containers")
	}
	if resetsForAMoment(s) {
		add("a link that is reset and restored at once: on kind packets are filtered, and a connection on which nothing is sent meanwhile is not reset")
	}
	if s.SecondPods() {
		lacks = append(lacks, cluster.NoSecondPods)
	}
	if s.Topology.Timing != "" {
		add("timing %s: the pods of kind have the intervals of a second", s.Topology.Timing)
	}
	lacks = append(lacks, live.UnsupportedReal(s)...)
	lacks = append(lacks, cluster.UnsupportedReleases(s)...)
	lacks = append(lacks, lackingPlugins(live.KeyIDs(s))...)
	lacks = append(lacks, b.lackingImages(s)...)
	for _, a := range s.Actions() {
		lacks = append(lacks, lacking(a)...)
		l, ok := a.(*scenario.Link)
		if !ok || l.From != history.RoleAggregator {
			continue
		}
		if len(s.Topology.Aggregated()) > 0 {
			add("a link from aggregator to load-balancer with further API servers: their pods go the same way, and cannot be told apart")
		}
		if b.opts.Operator.Image != "" && s.Topology.ByOperator() {
			add("a link from aggregator to load-balancer with operator.image: the operator's pod goes the same way, and cannot be told apart")
		}
	}
	return lacks
}

// resetsForAMoment reports whether a step restores the link that the step before it has reset.
func resetsForAMoment(s *scenario.Scenario) bool {
	var before *scenario.Link
	found := false
	scenario.Walk(s.Steps, func(step scenario.Step) {
		l, _ := step.Action.(*scenario.Link)
		found = found || l != nil && before != nil && before.Mode == history.LinkReset && l.Mode == scenario.LinkRestore && before.From == l.From && before.To == l.To
		before = l
	})
	return found
}

// lackingImages says why no image of plugins can be missing.
func (b *Backend) lackingImages(s *scenario.Scenario) []string {
	switch {
	case !operand.NamesMissing(s):
	case s.Topology.ControlPlanes == 1:
		return []string{"a missing image on one node: its API server waits for the plugin, so nothing can ask for another image"}
	case len(s.Topology.Aggregated()) > 0:
		return []string{"a missing image with further API servers: their pods have the images that were built for the cluster"}
	case b.opts.Plugin.Image != "":
		return []string{"a missing image with a plugin under test: its container has the image that was given on the command line"}
	}
	return nil
}

func lackingPlugins(keyIDs []string) (lacks []string) {
	if has := len(pluginContainerUnits()); len(keyIDs) > has {
		lacks = append(lacks, fmt.Sprintf("%d plugins on a node: the API servers' pods have %d containers for them", len(keyIDs), has))
	}
	return lacks
}

// lacking says why an action cannot be done.
func lacking(a scenario.Action) []string {
	switch a := a.(type) {
	case *scenario.Encryption:
		if a.Type == scenario.TypeKMS {
			return lackingPlugins(a.KeyIDs)
		}
	case *scenario.Attempt:
		if a.Method == scenario.AttemptStream {
			return []string{"attempt with verb stream: the addresses of the aggregators are inside of the cluster, and the harness is outside"}
		}
	case *scenario.Link:
		switch {
		case a.Mode == history.LinkStale:
			return []string{"a stale list of the load balancer: the cluster's own load balancer is configured again with each node"}
		case a.From == history.RoleReporter && a.Direction == string(netfault.Answers):
			return []string{"a link from reporter with direction answers: on loopback only the direction of requests can be filtered"}
		}
	case *scenario.Process:
		if !a.Overlap.IsZero() {
			return []string{"restart with overlap: the static pod has one container for its reporter, and one for each plugin"}
		}
		if a.Target.Role == history.RoleEtcd && a.Do != scenario.VerbPause && a.Do != scenario.VerbResume {
			return []string{"etcd: " + errEtcdOnlyPauses.Error()}
		}
	}
	return nil
}

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

// HasMemoryForTwo says whether the nodes of two clusters of three can run on this machine, or what to do about it. A machine whose
// limit cannot be read, because the engine is on another, is taken to have it.
func HasMemoryForTwo() error {
	if n := runtime.NumCPU(); n < processorsForTwo {
		return fmt.Errorf("%d processors are enough for one cluster of three nodes and not for two: that takes %d", n, processorsForTwo)
	}
	text, err := os.ReadFile(inotifyFile)
	if err != nil {
		return nil
	}
	return memoryForTwo(string(text))
}

func memoryForTwo(limit string) error {
	n, err := strconv.Atoi(strings.TrimSpace(limit))
	if err != nil || n >= inotifyForTwo {
		return nil
	}
	return fmt.Errorf("fs.inotify.max_user_instances is %d: enough for one cluster of three nodes and not for two; sysctl -w fs.inotify.max_user_instances=512 (root) allows both", n)
}
