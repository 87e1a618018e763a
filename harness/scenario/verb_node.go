package scenario

import (
	"regexp"
	"slices"
)

// ReporterLingers is the value of Node.Reporter of a reporter that outlives its node.
const ReporterLingers = "lingers"

// Node removes, adds or replaces a node: exactly one of Remove, Add and Replace is set.
type Node struct {
	Remove  string `yaml:"remove,omitempty" refers:"node"`
	Add     string `yaml:"add,omitempty" refers:"newNode"`
	Replace string `yaml:"replace,omitempty" refers:"node"`
	// With is the new node of Replace.
	With string `yaml:"with,omitempty" refers:"newNode"`
	// Reporter is ReporterLingers, or empty.
	Reporter string `yaml:"reporter,omitempty" enum:"lingers" without:"add" why:"it is that of a node that is removed or replaced"`
}

func (*Node) Harm() string { return "node" }

func (*Node) About() string {
	return "removes, adds or replaces a node"
}

func (n *Node) Validate(v Validation) {
	if v.Scenario().Topology.ByOperator() && len(v.Scenario().Topology.Aggregated()) > 0 {
		v.Add("", "node with lifecycle operator and further API servers, expected the nodes of the topology: their operators cannot set up pods on others")
	}
	written := slices.DeleteFunc([]string{n.Remove, n.Add, n.Replace}, func(name string) bool { return name == "" })
	if len(written) != 1 {
		v.Add("", "%d of remove, add and replace, expected one", len(written))
		return
	}
	if n.Add != "" {
		validateNewNode(v, "add", n.Add, "")
	}
	switch {
	case n.Replace == "" && n.With != "":
		v.Add("with", "with without replace, expected it with replace only")
	case n.Replace != "" && n.With == "":
		v.Add("", "replace without with, expected the name of the new node")
	case n.Replace != "":
		validateNewNode(v, "with", n.With, n.Replace)
	}
}

var nodeForm = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

// validateNewNode checks the name of a node that a step adds; only the node that it replaces may have it.
func validateNewNode(v Validation, field, name, replaces string) {
	switch {
	case !nodeForm.MatchString(name) || name == NodeAny || name == NodeAll:
		v.Add(field, "node %s is malformed, expected a DNS label such as cp-4", quote(name))
	case slices.Contains(v.Scenario().Topology.Nodes(), name) && name != replaces && !v.removed(name):
		v.Add(field, "node %s is there already, expected a new name", quote(name))
	}
}

func (v *validation) removed(name string) bool {
	return slices.ContainsFunc(v.actions, func(a Action) bool {
		n, ok := a.(*Node)
		return ok && (n.Remove == name || n.Replace == name)
	})
}
