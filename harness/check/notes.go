package check

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kmsharness/kmsharness/harness/check/facts"
	"github.com/kmsharness/kmsharness/harness/check/invariants"
	"github.com/kmsharness/kmsharness/harness/check/text"
	"github.com/kmsharness/kmsharness/harness/history"
)

// notes tell of deaths that no action asked for, of an API server or of the system under test. A program may die and come
// back so quickly that every invariant holds; a reader of the verdict should know.
func notes(v *facts.Facts) []string {
	var all []string
	if v.Run.ReporterIdentity == history.IdentityAdmin {
		all = append(all, "the reporters had an administrator's credentials, which allow more than a reporter needs: LEAST-PRIVILEGE judged what they wrote")
	}
	for e := range v.EachRecorded(history.KindExpectation) {
		if x := e.Expectation; x.NotJudged {
			all = append(all, "expectation "+x.ID+" was not judged: it assumes "+text.Quoted(x.Given)+", which was never true")
		}
	}
	watched := append(invariants.RolesUnderTest(v), history.RoleAPIServer)
	for e := range v.Each(history.KindContainer, history.KindProcess) {
		if what, node := death(*e, watched); what != "" && v.Period.Contains(e.At) && !v.Actions.AskedToEnd(node, e.At) && !v.Revisions[node].Contains(e.At) {
			all = append(all, fmt.Sprintf("at %s (%s): %s, and no action asked for that", text.Short(e.At.Sub(v.Period.From)), e.At.UTC().Format("15:04:05.000"), what))
		}
	}
	if more := len(all) - MaxViolations; more > 0 {
		all = append(all[:MaxViolations], fmt.Sprintf("and %d more deaths that no action asked for", more))
	}
	return all
}

// death is the event in words if it is one of a watched role, and the node; empty if it is none.
func death(e history.Event, watched []string) (what, node string) {
	if c := e.Container; c != nil && c.State == history.ContainerExited && watchedContainer(*c) {
		return "container " + text.Quoted(c.String()), c.Node
	}
	p := e.Process
	if p == nil || p.State != history.ProcessExited || !slices.Contains(watched, p.Role) {
		return "", ""
	}
	what = facts.ProcessOf(p).String() + " ended by itself"
	if p.Detail != "" {
		what += " (" + text.Quoted(p.Detail) + ")"
	}
	return what, p.Node
}

// watchedContainer: of a node, or of a pod the containers of the same roles. Plugins' are named after them, and so is etcd's.
func watchedContainer(c history.Container) bool {
	return c.Pod == "" || !strings.Contains(c.Name, history.RolePlugin) && c.Name != history.RoleEtcd
}

// ContainerChange is what a container engine told, for people: no invariant is judged by it.
type ContainerChange struct {
	history.Container
	At     time.Time     `json:"at"`
	Offset time.Duration `json:"offset"`
}

// containers are the first MaxViolations changes, and how many there were.
func containers(v *facts.Facts) (first []ContainerChange, count int) {
	for e := range v.Each(history.KindContainer) {
		first = append(first, ContainerChange{*e.Container, e.At, e.At.Sub(v.Period.From)})
	}
	return first[:min(len(first), MaxViolations)], len(first)
}
