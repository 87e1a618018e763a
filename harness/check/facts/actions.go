package facts

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kmsharness/kmsharness/harness/check/span"
	"github.com/kmsharness/kmsharness/harness/history"
)

// Action is something that the engine did, from its beginning to its end.
type Action struct {
	*history.Action
	span.Span
	Done, Failed bool
	why          string // of a failure
	// other: it was aimed at another API server, or what is its own.
	other bool
}

// Failure is the error of an action that failed.
func (a Action) Failure() string { return a.why + a.Error }

func (v *Facts) readActions() {
	open := map[string]int{}
	for e := range v.Each(history.KindAction) {
		a := e.Action
		if i, ok := open[a.ID]; ok && a.State != history.ActionBegan {
			began := &v.Actions[i]
			began.To, began.Done, began.Failed, began.why = e.At, a.State == history.ActionDone, a.State == history.ActionFailed, a.Error
			delete(open, a.ID)
			continue
		}
		if a.State == history.ActionBegan {
			open[a.ID] = len(v.Actions)
		}
		v.Actions = append(v.Actions, Action{Action: a, Span: span.New(e.At, e.At), Done: a.State == history.ActionDone, other: e.APIServer != ""})
	}
}

// targets are the words of an action's target.
func (a Action) targets() []string {
	return strings.FieldsFunc(a.Target, func(r rune) bool { return r == ' ' || r == ',' || r == ';' })
}

// EndsReporter reports whether an action ends the reporter of a node.
func (a Action) EndsReporter(node string) bool {
	return (a.Verb == "stop" || a.Verb == "restart") && slices.ContainsFunc(a.targets(), func(word string) bool {
		return word == history.RoleReporter || word == history.RoleReporter+"/"+node
	})
}

// on reports whether the action was aimed at p. A target that names no plugin is aimed at all of them.
func (a Action) on(p PluginID) bool {
	if a.other {
		return false
	}
	named := false
	for _, word := range a.targets() {
		if !strings.Contains(word, "/") {
			continue
		}
		named = true
		if word == p.String() || strings.HasSuffix(word, "/"+p.String()) || word == p.Node+"/*" {
			return true
		}
	}
	return !named
}

// actionsOn are the actions of a verb that were aimed at a plugin.
func (v *Facts) actionsOn(p PluginID, verb string) []Action {
	return slices.DeleteFunc(slices.Clone(v.Actions), func(a Action) bool { return a.Verb != verb || !a.on(p) })
}

// ends: these verbs end processes, containers or nodes.
func (a Action) ends() bool {
	return slices.Contains([]string{"stop", "kill", "restart", "node"}, a.Verb)
}

// aftermath is how long after an action something may still end because of it: a kubelet gives a pod half a minute.
const aftermath = time.Minute

// AskedToEnd reports whether an action may have ended something on a node: one that ends things, there or at a place that it does not name, and not long
// ago.
func (v *Facts) AskedToEnd(node string, at time.Time) bool {
	return v.lasting(at, aftermath, func(a Action) bool { return a.ends() && v.Concerns(a, node) })
}

// lasting reports whether an action that ok accepts was under way, or had been until a while before.
func (v *Facts) lasting(at time.Time, before time.Duration, ok func(Action) bool) bool {
	return slices.ContainsFunc(v.Actions, func(a Action) bool {
		over := (a.Done || a.Failed) && at.After(a.To.Add(before))
		return !at.Before(a.From) && !over && ok(a)
	})
}

// Concerns reports whether an action concerns a node: all do whose words name no other.
func (v *Facts) Concerns(a Action, node string) bool {
	words := a.Target
	for _, p := range a.Params {
		words += fmt.Sprint(" ", p)
	}
	other := false
	for name := range v.nodeNames {
		if strings.Contains(words, name) {
			if name == node || node == "" {
				return true
			}
			other = true
		}
	}
	return !other
}

// readNodeNames reads which nodes were ever expected, and on which something ran.
func (v *Facts) readNodeNames() {
	v.nodeNames = map[string]bool{}
	for e := range v.Each(history.KindExpected, history.KindProcess, history.KindContainer) {
		switch {
		case e.Expected != nil:
			for _, n := range e.Expected.Nodes {
				v.nodeNames[n.Name] = true
			}
		case e.Process != nil:
			v.nodeNames[e.Process.Node] = true
		default:
			v.nodeNames[e.Container.Node] = true
		}
	}
	delete(v.nodeNames, "")
}

// UnderWay reports whether an action of a verb was under way, or had just been.
func (v *Facts) UnderWay(verb string, at time.Time) bool {
	return v.lasting(at, v.Tolerance(), func(a Action) bool { return a.Verb == verb })
}

// Handled reports whether the scenario ended processes or nodes meanwhile.
func (v *Facts) Handled(at time.Time) bool { return v.lasting(at, v.Tolerance(), Action.ends) }

// Interruption is a pause of a program under test, or an end that was requested. It is forged if no action of the harness and no change of a container explains it:
// a program that can write the journal of its supervisor could excuse itself by one. No other fact takes forged ones into account.
type Interruption struct {
	*history.Event
	Pause, Forged bool
}

// UnderTest reports whether programs of a role are judged. The harness itself starts and ends the others.
func UnderTest(role string) bool {
	return slices.Contains([]string{history.RolePlugin, history.RoleReporter, history.RoleAggregator, history.RoleOperator}, role)
}

// readInterruptions reads pauses and requested ends. An operator has revisions rolled out, which end plugins and reporters at any time.
func (v *Facts) readInterruptions() {
	v.forged = map[int64]bool{}
	for e := range v.Each(history.KindProcess) {
		p := e.Process
		pause := p.State == history.ProcessPaused || p.State == history.ProcessSilenced
		requested := p.State == history.ProcessStopped || p.State == history.ProcessKilled
		if !UnderTest(p.Role) || !pause && (!requested || v.Run.Lifecycle == history.LifecycleOperator) {
			continue
		}
		x := Interruption{e, pause, !v.acted(e, pause) && !v.containerChanged(p.Node, e.At)}
		v.forged[e.Seq] = x.Forged
		v.Interruptions = append(v.Interruptions, x)
	}
}

// acted reports whether an action was under way at an event that can have caused it: a pause is that of programs of its role, or of what they are in.
func (v *Facts) acted(e *history.Event, pause bool) bool {
	return slices.ContainsFunc(v.Actions, func(a Action) bool {
		if a.From.After(e.At.Add(v.Tolerance())) || a.To.Before(e.At.Add(-v.Tolerance())) {
			return false
		}
		pauses := a.Verb == "pause" || a.Verb == "silence"
		return pauses == pause && (!pause || slices.Contains([]string{e.Process.Role, history.RoleNode, history.RolePod}, roleOf(a.Target))) && a.Verb != "wait"
	})
}

// containerChanged reports whether the container engine told of a change on a node about then.
func (v *Facts) containerChanged(node string, at time.Time) bool {
	for c := range v.Each(history.KindContainer) {
		if (node == "" || c.Container.Node == node) && at.Sub(c.At).Abs() <= max(v.Tolerance(), time.Second) {
			return true
		}
	}
	return false
}
