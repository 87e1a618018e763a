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
	// other is set of an action that was aimed at another API server, or at what is its own: it says nothing of the
	// plugins of this one.
	other bool
}

func (a Action) Failure() string { return a.why + a.Error }

// Ends reports whether an action ends processes, containers or nodes.
func (a Action) Ends() bool {
	return slices.Contains([]string{"stop", "kill", "restart", "node"}, a.Verb)
}

func (a Action) targets() []string {
	return strings.FieldsFunc(a.Target, func(r rune) bool { return r == ' ' || r == ',' || r == ';' })
}

func (a Action) EndsReporter(node string) bool {
	return (a.Verb == "stop" || a.Verb == "restart") && slices.ContainsFunc(a.targets(), func(word string) bool {
		return word == history.RoleReporter || word == history.RoleReporter+"/"+node
	})
}

// on reports whether the action was aimed at p. A target is words such as "plugin cp-1/2" or "plugin cp-1/*"; one that
// names no plugin is aimed at all of them.
func (a Action) on(p PluginID) bool {
	named := slices.DeleteFunc(a.targets(), func(word string) bool { return !strings.Contains(word, "/") })
	return !a.other && (len(named) == 0 || slices.ContainsFunc(named, func(word string) bool {
		return word == p.String() || strings.HasSuffix(word, "/"+p.String()) || word == p.Node+"/*"
	}))
}

// Actions are what the engine did, in the order in which it began.
type Actions struct {
	All       []Action
	nodes     map[string]bool // that were ever expected, or on which something ran
	tolerance time.Duration
}

func newActions(log *Log, tolerance time.Duration) *Actions {
	out := &Actions{nodes: map[string]bool{}, tolerance: tolerance}
	open := map[string]int{}
	for e := range log.Each(history.KindAction) {
		a := e.Action
		if i, ok := open[a.ID]; ok && a.State != history.ActionBegan {
			began := &out.All[i]
			began.To, began.Done, began.Failed, began.why = e.At, a.State == history.ActionDone, a.State == history.ActionFailed, a.Error
			delete(open, a.ID)
			continue
		}
		if a.State == history.ActionBegan {
			open[a.ID] = len(out.All)
		}
		out.All = append(out.All, Action{Action: a, Span: span.New(e.At, e.At), Done: a.State == history.ActionDone, other: e.APIServer != ""})
	}
	for e := range log.Each(history.KindExpected, history.KindProcess, history.KindContainer) {
		switch {
		case e.Expected != nil:
			for _, n := range e.Expected.Nodes {
				out.nodes[n.Name] = true
			}
		case e.Process != nil:
			out.nodes[e.Process.Node] = true
		default:
			out.nodes[e.Container.Node] = true
		}
	}
	delete(out.nodes, "")
	return out
}

// aftermath is how long after an action something may still end because of it: a kubelet gives a pod half a minute.
const aftermath = time.Minute

// AskedToEnd reports whether an action may have ended something on a node: one that ends things, there or at a place that it does not name, and not long
// ago.
func (a *Actions) AskedToEnd(node string, at time.Time) bool {
	return a.lasting(at, aftermath, func(x Action) bool { return x.Ends() && a.Concerns(x, node) })
}

// UnderWay reports whether an action that ok accepts was under way, or had just been.
func (a *Actions) UnderWay(at time.Time, ok func(Action) bool) bool {
	return a.lasting(at, a.tolerance, ok)
}

// lasting reports whether an action that ok accepts was under way, or had been until a while before.
func (a *Actions) lasting(at time.Time, before time.Duration, ok func(Action) bool) bool {
	return slices.ContainsFunc(a.All, func(x Action) bool {
		over := (x.Done || x.Failed) && at.After(x.To.Add(before))
		return !at.Before(x.From) && !over && ok(x)
	})
}

// Concerns reports whether an action concerns a node. The names of nodes are looked for in its words, because each verb
// has targets and parameters of its own. An action that names no node may concern each.
func (a *Actions) Concerns(x Action, node string) bool {
	words := x.Target
	for _, p := range x.Params {
		words += fmt.Sprint(" ", p)
	}
	other := false
	for name := range a.nodes {
		if strings.Contains(words, name) {
			if name == node || node == "" {
				return true
			}
			other = true
		}
	}
	return !other
}

func (a *Actions) on(p PluginID, verbs ...string) []Action {
	return slices.DeleteFunc(slices.Clone(a.All), func(x Action) bool { return !slices.Contains(verbs, x.Verb) || !x.on(p) })
}
