package cluster

import (
	"fmt"
	"slices"

	"github.com/kmsharness/kmsharness/harness/backend/live"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

// Unsupported implements backend.Backend.
func (b *Backend) Unsupported(s *scenario.Scenario) []string {
	var lacks []string
	add := func(format string, args ...any) { lacks = append(lacks, fmt.Sprintf(format, args...)) }
	t := s.Topology
	if t.ControlPlanes > maxNodes {
		add("%d control-plane nodes: each is a pod of five containers, at most %d were tried", t.ControlPlanes, maxNodes)
	}
	if t.Aggregators > maxAggregators {
		add("%d aggregators: the hub has containers for %d", t.Aggregators, maxAggregators)
	}
	if len(live.KeyIDs(s)) > maxPlugins {
		add("%d plugins on a node: its pod has containers for %d", len(live.KeyIDs(s)), maxPlugins)
	}
	if len(t.Aggregated()) > 0 {
		add("aggregated API servers: they need encryption configurations and etcd")
	}
	if t.ByOperator() {
		add("lifecycle operator: it configures the encryption of API servers, which are not the harness's")
	}
	if t.Connectivity == history.ConnectService {
		add("connectivity service: every reporter goes through an agent of its own, and no load balancer is the harness's")
	}
	if t.Connectivity == history.ConnectStream {
		add("connectivity stream: the hub has no addresses for the streams of reporters")
	}
	if t.DNS {
		add("dns: the resolver of pods is a part of the cluster, which is not the harness's")
	}
	if t.Start == scenario.StartStopped {
		add("a cold start: the API servers are not the harness's, and run")
	}
	if err := live.CheckOperator(s.Operator); err != nil {
		add("%v", err)
	}
	lacks = append(lacks, live.UnsupportedVerbs(s)...)
	lacks = append(lacks, live.UnsupportedRefusals(s)...)
	for _, a := range s.Actions() {
		if reason := unsupported(a); reason != "" {
			lacks = append(lacks, reason)
		}
	}
	slices.Sort(lacks)
	return slices.Compact(lacks)
}

// unsupported says why an action cannot be done; empty: it can.
func unsupported(a scenario.Action) string {
	switch a := a.(type) {
	case *scenario.Attempt:
		if !a.Flood.IsZero() {
			return "attempt with flood: others use the API server, too"
		}
	case *scenario.Encryption, *scenario.Data:
		return fmt.Sprintf("%s: the API servers do not encrypt through the plugins of a scenario", a.Verb())
	case *scenario.APIServer, *scenario.Rollback:
		return fmt.Sprintf("%s: the encryption configuration is for an operator", a.Verb())
	case *scenario.Link:
		own := a.From == history.RoleReporter && a.To == history.RoleAPIServer || a.From == history.RoleAggregator && a.To == history.RoleLoadBalancer
		if !own {
			return fmt.Sprintf("a link from %s to %s: only the connections of reporters and aggregators to the API server are the harness's", a.From, a.To)
		}
	case *scenario.Process:
		return unsupportedProcess(a)
	}
	return ""
}

func unsupportedProcess(a *scenario.Process) string {
	switch a.Target.Role {
	case history.RoleAPIServer, history.RoleEtcd, history.RoleLoadBalancer, history.RoleNode, history.RolePod, history.RoleOperator:
		return fmt.Sprintf("%s: it is a part of the cluster, which is not the harness's", a.Target.Role)
	}
	switch {
	case a.With == scenario.WithContainer:
		return "restart with container: the supervisor of the container is all that the harness controls"
	case !a.Overlap.IsZero():
		return "restart with overlap: the pod of a node has one container for its reporter"
	}
	return ""
}
