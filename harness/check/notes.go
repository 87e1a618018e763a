package check

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kmsharness/kmsharness/harness/history"
)

// notes tell of deaths that no action asked for, of an API server or of the system under test. A program may die and come
// back so quickly that every invariant holds; whoever reads the verdict should know.
func notes(v *Facts) []string {
	var all []string
	if v.run.ReporterIdentity == history.IdentityAdmin {
		all = append(all, "the reporters had an administrator's credentials, which allow more than a reporter needs: LEAST-PRIVILEGE judged what they wrote")
	}
	for n := range v.all {
		if x := v.all[n].Expectation; x != nil && x.NotJudged {
			all = append(all, "expectation "+x.ID+" was not judged: it assumes "+quoted(x.Given)+", which was never true")
		}
	}
	watched := append(v.rolesUnderTest(), history.RoleAPIServer)
	for n := range v.events {
		e := &v.events[n]
		if text, node := death(*e, watched); text != "" && v.complete.has(e.At) && !asked(v, node, e.At) && !v.processes.revising(node).has(e.At) {
			all = append(all, fmt.Sprintf("at %s (%s): %s, and no action asked for that", short(e.At.Sub(v.complete.from)), e.At.UTC().Format("15:04:05.000"), text))
		}
	}
	if more := len(all) - MaxViolations; more > 0 {
		all = append(all[:MaxViolations], fmt.Sprintf("and %d more deaths that no action asked for", more))
	}
	return all
}

// death is the event in words if it is one of a watched role, and the node; empty if it is none.
func death(e history.Event, watched []string) (text, node string) {
	if c := e.Container; c != nil && c.State == history.ContainerExited && watchedContainer(*c) {
		return "container " + quoted(c.String()), c.Node
	}
	p := e.Process
	if p == nil || p.State != history.ProcessExited || !slices.Contains(watched, p.Role) {
		return "", ""
	}
	name := process{p.Role, p.Node, p.KeyID, p.Instance}.String()
	if p.Detail != "" {
		return fmt.Sprintf("%s ended by itself (%s)", name, quoted(p.Detail)), p.Node
	}
	return name + " ended by itself", p.Node
}

// watchedContainer: of a node, or of a pod the containers of the same roles. Plugins' are named after them, and so is etcd's.
func watchedContainer(c history.Container) bool {
	return c.Pod == "" || !strings.Contains(c.Name, history.RolePlugin) && c.Name != history.RoleEtcd
}

// String is how a person calls it: "reporter/cp-1", "aggregator 2".
func (p process) String() string {
	name := p.role
	if p.node != "" {
		name += "/" + p.node
	}
	if p.instance != 0 {
		name += fmt.Sprintf(" %d", p.instance)
	}
	return name
}

// aftermath is how long after an action something may still end because of it: a kubelet gives a pod half a minute.
const aftermath = time.Minute

// asked says whether an action may have brought a death on a node about: one that ends things, there or at a place that it
// does not name, and not long ago.
func asked(v *Facts, node string, at time.Time) bool {
	for _, a := range v.plugins.actions {
		until := a.to.Add(aftermath)
		if !a.done && !a.failed {
			until = v.complete.to
		}
		if ends(a) && !at.Before(a.from) && !at.After(until) && concerns(v, a, node) {
			return true
		}
	}
	return false
}

// ends: these verbs end processes, containers or nodes.
func ends(a action) bool {
	return slices.Contains([]string{"stop", "kill", "restart", "node"}, a.Verb)
}

// concerns: an action concerns a node unless its words name others only.
func concerns(v *Facts, a action, node string) bool {
	words := a.Target
	for _, p := range a.Params {
		words += fmt.Sprint(" ", p)
	}
	other := false
	for name := range nodeNames(v) {
		if strings.Contains(words, name) {
			if name == node || node == "" {
				return true
			}
			other = true
		}
	}
	return !other
}

// nodeNames are all that were ever expected, and all that something ran on.
func nodeNames(v *Facts) map[string]bool {
	all := map[string]bool{}
	for n := range v.events {
		e := &v.events[n]
		switch {
		case e.Expected != nil:
			for _, n := range e.Expected.Nodes {
				all[n.Name] = true
			}
		case e.Process != nil && e.Process.Node != "":
			all[e.Process.Node] = true
		case e.Container != nil && e.Container.Node != "":
			all[e.Container.Node] = true
		}
	}
	return all
}
