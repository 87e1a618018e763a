package scenarios_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/kmsharness/kmsharness/harness/backend/choose"
	"github.com/kmsharness/kmsharness/harness/backend/kind"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

// onlyKind is the label of scenarios that judge what only kind has: metadata.onlyKind says what that is.
const onlyKind = "only-kind"

// nightly are the mechanisms of a real cluster that the gate leaves to LABELS=all, and why.
var nightly = map[string]string{
	"aggregators past the load balancer": "their pods reach API servers at the addresses of nodes, as on a single node in the gate",
	"link from apiserver to etcd":        "rules of the packet filter like those of other links of a node",
	"aggregated API servers":             "their Deployments need a cluster of another shape, which takes two minutes to boot",
	"link mode throttled":                "another fault of the proxy that link mode slow needs",
	"link mode lossy":                    "another fault of the proxy that link mode slow needs",
	"link mode slow-handshake":           "another fault of the proxy that link mode slow needs, without the rule for existing connections",
	"node outlived":                      "the node is removed as any other, only later",
	"streams":                            "reporters without rights need a cluster of another shape, which takes two minutes to boot: the stage kind-stream",
	"pods that are made anew":            "the API server's pod in four revisions takes three and a half minutes; restarts of static pods and containers are judged by others",
	"power loss of all nodes":            "of three nodes; a single node loses its power in the gate",
	"Alt-Svc":                            "the proxies in front of the API servers need a cluster of another shape, which takes two minutes to boot",
}

// mechanisms are what a scenario needs of a real cluster that no other backend has: its actions say so.
func mechanisms(s *scenario.Scenario) []string {
	found := map[string]bool{}
	if s.Topology.Connectivity == history.ConnectStream {
		return []string{"streams"} // the other mechanisms are judged with them in the night
	}
	if s.Topology.Advertises() {
		found["Alt-Svc"] = true
	}
	if s.Topology.AggregatorConnectivity != "" {
		found["aggregators past the load balancer"] = true
	}
	if len(s.Topology.Aggregated()) > 0 {
		found["aggregated API servers"] = true
	}
	if s.Topology.ByOperator() {
		found["pods that are made anew"] = true
	}
	for _, a := range s.Actions() {
		for _, m := range mechanismsOf(a) {
			found[m] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}

func mechanismsOf(a scenario.Action) []string {
	switch a := a.(type) {
	case *scenario.Link:
		if a.Mode == history.LinkStale { // not on kind
			return nil
		}
		if !scenario.Lasts(a) || a.From == "client" || a.From == "harness" {
			return nil // these connections are a proxy's on this machine, as on local
		}
		return []string{fmt.Sprintf("link from %s to %s", a.From, a.To), "link mode " + a.Mode}
	case *scenario.Node:
		return nodeChange(a)
	case *scenario.Process:
		if a.Do == scenario.VerbStart || a.Do == scenario.VerbResume {
			return nil
		}
		p := a.Target
		switch {
		case p.APIServer != "" && p.APIServer != scenario.APIServers()[0]:
			return nil // in the topology
		case p.Role == history.RoleNode && p.Node == "all":
			return []string{fmt.Sprintf("%s of all nodes", powerVerb(a.Do))}
		case p.Role == history.RoleNode:
			return []string{fmt.Sprintf("%s of a node", powerVerb(a.Do))}
		case p.Role == history.RolePod:
			return []string{"static pod"}
		case p.Role == history.RoleEtcd:
			return []string{"etcd members"}
		case p.Role == history.RoleLoadBalancer:
			return []string{"load balancer's container"}
		case a.With == scenario.WithContainer:
			return []string{"container restart of " + p.Role}
		}
	}
	return nil
}

// powerVerb is the same for a node that boots again in one step or in two.
func powerVerb(v scenario.Verb) string {
	if v == scenario.VerbPause {
		return "pause"
	}
	return "power loss"
}

func nodeChange(a *scenario.Node) (found []string) {
	removed, added := a.Remove, a.Add
	if replaced := a.Replace; replaced != "" {
		removed, added = replaced, a.With
	}
	if removed != "" {
		found = append(found, "kubeadm removal")
	}
	if a.Reporter == scenario.ReporterLingers {
		found = append(found, "node outlived")
	}
	switch {
	case added == "":
	case added == removed || a.Add != "": // a reset adds nodes as well, under names that were there before
		found = append(found, "kubeadm join")
	default:
		found = append(found, "kubeadm join, new name")
	}
	return found
}

// gated reports whether the gate runs a scenario on kind.
func gated(s *scenario.Scenario) bool {
	return s.OnlyKind != "" && !slices.Contains(s.Labels, "slow") || slices.Contains(s.Labels, "kind")
}

// What the project is for is judged on kind by the gate as well: a scenario of each category of failures.
func TestKindHasEachCategory(t *testing.T) {
	missing := []string{"hang", "grpc-status", "KEK rotation", "cold start", "new name", "to identity", "to aescbc", "to KMS"}
	for _, s := range catalogue() {
		if !gated(s) {
			continue
		}
		missing = slices.DeleteFunc(missing, func(category string) bool { return slices.Contains(categories(s), category) })
	}
	if len(missing) > 0 {
		t.Errorf("no scenario with the label kind has: %s", strings.Join(missing, ", "))
	}
}

func categories(s *scenario.Scenario) (found []string) {
	if s.Topology.Start == scenario.StartStopped {
		found = append(found, "cold start")
	}
	for _, a := range s.Actions() {
		switch a := a.(type) {
		case *scenario.Inject:
			found = append(found, a.Fault)
		case *scenario.Rotate:
			found = append(found, "KEK rotation")
		case *scenario.Node:
			if a.With != a.Replace {
				found = append(found, "new name")
			}
		case *scenario.Encryption:
			found = append(found, "to "+a.Type)
		}
	}
	return found
}

// wrongSelection says what is wrong with the choice of scenarios that have the label.
func wrongSelection(all []*scenario.Scenario) (wrong []string) {
	judged, known := map[string]bool{}, map[string]bool{}
	for _, s := range all {
		of := mechanisms(s)
		if slices.Contains(s.Labels, onlyKind) {
			wrong = append(wrong, fmt.Sprintf("%s: the label %s comes from metadata.onlyKind, which gives the reason", s.Name, onlyKind))
		}
		if s.OnlyKind != "" && len(of) == 0 {
			wrong = append(wrong, s.Name+": onlyKind is set, but its actions need nothing that only kind has")
		}
		for _, m := range of {
			known[m] = true
			judged[m] = judged[m] || gated(s)
		}
	}
	for _, s := range all {
		for _, m := range mechanisms(s) {
			if !judged[m] && nightly[m] == "" {
				wrong = append(wrong, fmt.Sprintf("%s: only kind can judge it (%s), and no scenario with that has the label %s: set metadata.onlyKind, or give a reason in nightly", s.Name, m, onlyKind))
			}
		}
	}
	for m := range nightly {
		if judged[m] || !known[m] {
			wrong = append(wrong, "nightly: no longer needed: "+m)
		}
	}
	return wrong
}

// What only kind can judge is judged there by the gate, each mechanism of a real cluster at least once.
func TestOnlyKind(t *testing.T) {
	for _, wrong := range wrongSelection(catalogue()) {
		t.Error(wrong)
	}
}

// The gate boots one cluster of three nodes and one of a single node, however many run side by side.
func TestOnlyKindNeedsTwoClusters(t *testing.T) {
	var clusters []string
	for _, g := range groups(catalogue(), func(s *scenario.Scenario) string { return choose.Plane(kind.Name, s) }, gated) {
		if slices.ContainsFunc(g.Scenarios, gated) {
			clusters = append(clusters, g.Name)
		}
	}
	if want := "on 3 nodes, part 01; on 1 node, part 01"; strings.Join(clusters, "; ") != want {
		t.Errorf("groups %q, want %q", strings.Join(clusters, "; "), want)
	}
}

// A selection that misses something is found, and each mistake is named.
func TestWrongSelectionsAreFound(t *testing.T) {
	good := catalogue()
	change := func(name string, f func(*scenario.Scenario)) []*scenario.Scenario {
		all := slices.Clone(good)
		i := slices.IndexFunc(all, func(s *scenario.Scenario) bool { return s.Name == name })
		changed := *all[i]
		all[i] = &changed
		f(&changed)
		return all
	}
	unlabelled := func(s *scenario.Scenario) { s.OnlyKind = "" }
	fresh := &scenario.Scenario{Name: "fresh", Steps: []scenario.Step{{Action: &scenario.Process{Do: scenario.VerbPause, Target: scenario.Selector{Role: history.RoleNode, Node: "all"}}}}}
	for want, all := range map[string][]*scenario.Scenario{
		"static-pod-restarted: only kind can judge it (static pod)":               change("static-pod-restarted", unlabelled),
		"control-plane-scaled-down-and-up: only kind can judge it (kubeadm join)": change("node-replaced-same-name", unlabelled),
		"fresh: only kind can judge it (pause of all nodes)":                      append(slices.Clone(good), fresh.WithDefaults()),
		"plugin-hangs: onlyKind is set, but its actions need nothing":             change("plugin-hangs", func(s *scenario.Scenario) { s.OnlyKind = "everything" }),
		"nightly: no longer needed: streams":                                      change("stream-resets", func(s *scenario.Scenario) { s.OnlyKind = "streams" }),
		"plugin-hangs: the label only-kind comes from metadata.onlyKind":          change("plugin-hangs", func(s *scenario.Scenario) { s.Labels = []string{onlyKind} }),
	} {
		if !slices.ContainsFunc(wrongSelection(all), func(w string) bool { return strings.HasPrefix(w, want) }) {
			t.Errorf("%v, want %q", wrongSelection(all), want)
		}
	}
}
