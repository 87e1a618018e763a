package explain

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

// words is a step as a sentence.
func words(s scenario.Step) string {
	switch {
	case s.Action != nil:
		return doing(*s.Action)
	case s.Expect != nil:
		return expecting(*s.Expect)
	case s.Parallel != nil:
		return "at the same time:"
	case s.Repeat != nil:
		if s.Repeat.Until != "" {
			return fmt.Sprintf("up to %d times, until %s:", s.Repeat.Times, s.Repeat.Until)
		}
		return fmt.Sprintf("%d times:", s.Repeat.Times)
	}
	return "let " + s.Wait.Text + " pass"
}

func expecting(e scenario.Expectation) string {
	switch e.Mode {
	case scenario.ModeHolds:
		return "for " + e.Bound.Text + " always: " + e.CEL
	case scenario.ModeNever:
		return "for " + e.Bound.Text + " never: " + e.CEL
	}
	return "within " + e.Bound.Text + ": " + e.CEL
}

func doing(a scenario.Action) string {
	switch a.Verb {
	case scenario.VerbInject:
		return pluginsOf(a.Plugin) + ": fault " + a.Fault + onMethod(a) + parameters(a)
	case scenario.VerbRelease:
		return pluginsOf(a.Plugin) + ": " + orText(a.Fault, "every fault") + " ends" + onMethod(a)
	case scenario.VerbRotate:
		return "the remote KMS has a new KEK" + parameters(a)
	case scenario.VerbKMS:
		return "remote KMS: " + a.Text("op") + where(a.Text("node")) + parameters(a, "op", "node")
	case scenario.VerbLink:
		return "link " + a.Link.From + " → " + a.Link.To + ofLink(a.Link) + ": " + a.Text("mode") + parameters(a, "mode")
	case scenario.VerbRefuse:
		return "API server" + where(a.Process.Node) + ": " + orText(a.Process.Role, "reporters' and aggregators'") + " requests: " + a.Text("mode") + parameters(a, "mode")
	case scenario.VerbWatches:
		return "API server" + where(a.Process.Node) + ": watches: " + a.Text("mode") + parameters(a, "mode")
	case scenario.VerbCredential:
		return "credential of the reporter" + where(a.Process.Node) + ": " + a.Text("mode")
	case scenario.VerbNode:
		return "nodes:" + parameters(a)
	case scenario.VerbEncryption:
		return "encryption type " + a.Text("type") + parameters(a, "type")
	case scenario.VerbData:
		return a.Text("op") + " secrets" + parameters(a, "op")
	case scenario.VerbEntries:
		return "typed list: entries of nodes that do not exist" + parameters(a)
	case scenario.VerbCondition, scenario.VerbAttempt:
		return string(a.Verb) + parameters(a)
	}
	return string(a.Verb) + " " + processesOf(a.Process) + parameters(a)
}

func pluginsOf(s scenario.Selector) string {
	who := "plugins"
	if s.KeyID != "" {
		who = "plugin " + s.KeyID
	}
	return who + where(s.Node)
}

func processesOf(s scenario.Selector) string {
	who := s.Role
	if s.KeyID != "" {
		who += " " + s.KeyID
	}
	if s.Instance != "" {
		who += " " + s.Instance
	}
	if slices.Contains([]string{history.RoleAggregator, history.RoleEtcd, history.RoleRemoteKMS, history.RoleLoadBalancer}, s.Role) {
		return who
	}
	return who + where(s.Node)
}

// ofLink names the node of a link that nodes have.
func ofLink(l scenario.Selector) string {
	if l.Node == "" && l.To == history.RoleLoadBalancer && l.From != history.RoleReporter {
		return ""
	}
	return where(l.Node)
}

func where(node string) string {
	switch node {
	case "", scenario.NodeAll:
		return " of all nodes"
	case scenario.NodeAny:
		return " of the node that is drawn"
	}
	return " of " + node
}

func onMethod(a scenario.Action) string {
	if a.Method == "" {
		return ""
	}
	return " on " + a.Method
}

// parameters are the rest, in the order of their names.
func parameters(a scenario.Action, but ...string) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(a.Params)) {
		if !slices.Contains(but, name) {
			all = append(all, fmt.Sprintf("%s %v", name, a.Params[name]))
		}
	}
	if len(all) == 0 {
		return ""
	}
	return " (" + strings.Join(all, ", ") + ")"
}

func orText(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}
