package check

import (
	"strings"
	"time"

	"github.com/kmsharness/kmsharness/harness/history"
)

func noForgedExcuse() Invariant {
	return Invariant{
		ID:        "NO-FORGED-EXCUSE",
		Statement: "each pause and each requested end of a program under test has an action or a container's change behind it",
		Source:    "invariants, NO-FORGED-EXCUSE",
		Judge: func(v *Facts) (f Finding) {
			f.Judged, f.when = v.excuses.judged.Judged, v.excuses.judged.when
			for _, x := range v.excuses.judged.Violations {
				f.Violate(x)
			}
			return f
		},
	}
}

// excuseFacts are the pauses and requested ends of programs under test that nothing of the harness's own is behind. A program that can write the journal
// of its supervisor would excuse itself by them. No invariant takes them into account.
type excuseFacts struct {
	facts   *Facts
	actions []action
	changes []history.Event // of containers
	forged  map[int64]bool  // by Seq of the event
	judged  Finding
}

func (x *excuseFacts) read() {
	x.forged = map[int64]bool{}
	x.actions = readActions(x.facts.events)
	for n := range x.facts.events {
		if e := &x.facts.events[n]; e.Kind == history.KindContainer {
			x.changes = append(x.changes, *e)
		}
	}
	for n := range x.facts.events {
		if e := &x.facts.events[n]; e.Kind == history.KindProcess {
			x.judgeEnd(e)
		}
	}
}

// underTest reports whether programs of a role are judged. The harness itself starts and ends the others.
func underTest(role string) bool {
	switch role {
	case history.RolePlugin, history.RoleReporter, history.RoleAggregator, history.RoleOperator:
		return true
	}
	return false
}

// judgeEnd judges a pause, and an end that was requested. An operator has revisions rolled out, which end plugins and reporters at any time.
func (x *excuseFacts) judgeEnd(e *history.Event) {
	p := e.Process
	pause := p.State == history.ProcessPaused || p.State == history.ProcessSilenced
	requested := p.State == history.ProcessStopped || p.State == history.ProcessKilled
	if !underTest(p.Role) || !pause && (!requested || x.facts.run.Lifecycle == history.LifecycleOperator) {
		return
	}
	x.judged.JudgedAt(e.At, e.At)
	if x.acted(e, pause) || x.contained(p.Node, e.At) {
		return
	}
	want := "an action under way that ends it"
	if pause {
		want = "an action under way that pauses it, its pod or its node"
	}
	x.forged[e.Seq] = true
	x.judged.Violate(Violation{At: e.At, Seq: e.Seq, Node: p.Node, KeyID: p.KeyID, Allowed: want,
		Seen: process{p.Role, p.Node, p.KeyID, p.Instance}.String() + " is " + p.State + ", and no action is under way that can have caused it"})
}

// acted reports whether an action was under way at an event that can have caused it.
func (x *excuseFacts) acted(e *history.Event, pause bool) bool {
	tolerance := x.facts.tolerance()
	for _, a := range x.actions {
		if a.from.After(e.At.Add(tolerance)) || a.to.Before(e.At.Add(-tolerance)) {
			continue
		}
		if pauses := a.Verb == "pause" || a.Verb == "silence"; pauses == pause && (!pause || pausesRole(a, e.Process.Role)) && a.Verb != "wait" {
			return true
		}
	}
	return false
}

// pausesRole reports whether a pause is that of programs of a role, or of what they are in.
func pausesRole(a action, role string) bool {
	target, _, _ := strings.Cut(strings.TrimPrefix(a.Target, "process "), "/")
	return target == role || target == history.RoleNode || target == history.RolePod
}

// contained reports whether the container engine told of a change on a node about then.
func (x *excuseFacts) contained(node string, at time.Time) bool {
	for n := range x.changes {
		c := &x.changes[n]
		if (node == "" || c.Container.Node == node) && at.Sub(c.At).Abs() <= max(x.facts.tolerance(), time.Second) {
			return true
		}
	}
	return false
}
