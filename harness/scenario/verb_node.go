package scenario

import (
	"slices"
)

// VerbNode removes, adds or replaces a node.
const VerbNode Verb = "node"

// ReporterLingers is the value of Node.Reporter of a reporter that outlives its node.
const ReporterLingers = "lingers"

// Node removes, adds or replaces a node: exactly one of Remove, Add and Replace is set.
type Node struct {
	Remove, Add, Replace string
	// With is the new node of Replace.
	With string
	// Reporter is ReporterLingers, or empty.
	Reporter string
}

// Verb implements Action.
func (*Node) Verb() Verb { return VerbNode }

func (n *Node) fields() []field {
	named := func(p *string) value { v := oneNodeField(p); v.check = nil; return v }
	reporter := keywordField(&n.Reporter, ReporterLingers)
	reporter.check = nil
	return []field{optional("remove", named(&n.Remove)), optional("add", named(&n.Add)), optional("replace", named(&n.Replace)), optional("with", named(&n.With)), optional("reporter", reporter)}
}

// Describe implements Action.
func (n *Node) Describe() string { return "nodes:" + parameters(n) }

func (*Node) harm() string { return string(VerbNode) }

func (n *Node) check(v *validation, at place) {
	if v.scenario.Topology.ByOperator() && len(v.scenario.Topology.Aggregated()) > 0 {
		v.add(at, "node with lifecycle operator and further API servers, expected the nodes of the topology: their operators cannot set up pods on others")
	}
	ops := map[string]string{"remove": n.Remove, "add": n.Add, "replace": n.Replace}
	written := []string{}
	for _, op := range []string{"remove", "add", "replace"} {
		if ops[op] != "" {
			written = append(written, op)
		}
	}
	if len(written) != 1 {
		v.add(at, "%d of remove, add and replace, expected one", len(written))
		return
	}
	op := written[0]
	if op == "add" {
		v.newNode(at.at("add"), n.Add, "")
	} else {
		v.nodeName(at.at(op), ops[op], append(slices.Clone(v.nodes), NodeAny))
	}
	switch {
	case op == "replace" && n.With == "":
		v.add(at, "replace without with, expected the name of the new node")
	case op != "replace" && n.With != "":
		v.add(at.at("with"), "with beside %s, expected it with replace only", op)
	case op == "replace":
		v.newNode(at.at("with"), n.With, n.Replace)
	}
	if n.Reporter != "" && (op == "add" || n.Reporter != ReporterLingers) {
		v.add(at.at("reporter"), "reporter is %s beside %s, expected lingers beside remove or replace", quote(n.Reporter), op)
	}
}

// newNode checks the name of a node that a step adds; only the node that it replaces may have it.
func (v *validation) newNode(at place, name, replaces string) {
	switch {
	case !nodeForm.MatchString(name) || name == NodeAny || name == NodeAll:
		v.add(at, "node %s is malformed, expected a DNS label such as cp-4", quote(name))
	case slices.Contains(v.scenario.Topology.Nodes(), name) && name != replaces && !v.removed(name):
		v.add(at, "node %s is there already, expected a new name", quote(name))
	}
}

func (v *validation) removed(name string) bool {
	return slices.ContainsFunc(v.actions, func(a Action) bool {
		n, ok := a.(*Node)
		return ok && (n.Remove == name || n.Replace == name)
	})
}
