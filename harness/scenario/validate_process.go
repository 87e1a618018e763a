package scenario

import (
	"slices"

	"github.com/kmsharness/kmsharness/harness/history"
)

// roles of processes that an action can name; those of a node first.
func roles() []string {
	return append(nodeRoles(), history.RoleAggregator, history.RoleEtcd, history.RoleRemoteKMS, history.RoleLoadBalancer)
}

func nodeRoles() []string {
	return []string{history.RoleReporter, history.RolePlugin, history.RoleAPIServer}
}

func (v *validation) process(a Action, at place) {
	p := a.Process
	if !v.word(at.at("role"), "role", p.Role, roles()) {
		return
	}
	v.someNodes(at.at("node"), p.Node)
	v.keyID(at.at("keyID"), p.KeyID)
	if p.Node != "" && !slices.Contains(nodeRoles(), p.Role) {
		v.add(at.at("node"), "role %s has no node, expected none", p.Role)
	}
	if p.KeyID != "" && p.Role != history.RolePlugin {
		v.add(at.at("keyID"), "role %s has no keyID, expected none", p.Role)
	}
	v.instance(p, at.at("instance"))
	if with, ok := a.Params["with"]; ok && with != "kill" {
		v.add(at.at("with"), "with is %s, expected kill or nothing", quote(a.Text("with")))
	}
}

func (v *validation) instance(p Selector, at place) {
	switch {
	case p.Instance == "":
	case p.Role != history.RoleAggregator:
		v.add(at, "role %s has one instance, expected none", p.Role)
	default:
		known := append(instances()[:max(0, min(v.scenario.Topology.Aggregators, MaxAggregators))], "leader", "standby")
		v.word(at, "instance", p.Instance, known)
	}
}
