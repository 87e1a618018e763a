package facts

import (
	"slices"
	"time"

	"github.com/kmsharness/kmsharness/harness/history"
)

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

// newInterruptions reads pauses and requested ends. An operator has revisions rolled out, which end plugins and reporters at any time.
// Without an operator only actions of the harness end these programs, so that each requested end needs one.
func newInterruptions(log *Log, actions *Actions, lifecycle string) (out []Interruption) {
	for e := range log.Each(history.KindProcess) {
		p := e.Process
		pause := p.State == history.ProcessPaused || p.State == history.ProcessSilenced
		requested := p.State == history.ProcessStopped || p.State == history.ProcessKilled
		if UnderTest(p.Role) && (pause || requested && lifecycle != history.LifecycleOperator) {
			out = append(out, Interruption{e, pause, !actions.caused(e, pause) && !containerChanged(log, p.Node, e.At, max(actions.tolerance, time.Second))})
		}
	}
	return out
}

// caused reports whether an action was under way at an event that can have caused it: a pause is that of programs of its role, or of what they are in.
// The tolerance is on both sides, because the supervisor and the engine read the clock apart from each other. A wait
// action causes nothing, although it is under way for as long as some faults.
func (a *Actions) caused(e *history.Event, pause bool) bool {
	return slices.ContainsFunc(a.All, func(x Action) bool {
		if x.From.After(e.At.Add(a.tolerance)) || x.To.Before(e.At.Add(-a.tolerance)) {
			return false
		}
		pauses := x.Verb == "pause" || x.Verb == "silence"
		return pauses == pause && (!pause || slices.Contains([]string{e.Process.Role, history.RoleNode, history.RolePod}, roleOf(x.Target))) && x.Verb != "wait"
	})
}

// containerChanged reports whether the container engine recorded a change on a node within about of an instant.
func containerChanged(log *Log, node string, at time.Time, about time.Duration) bool {
	for c := range log.Each(history.KindContainer) {
		if (node == "" || c.Container.Node == node) && at.Sub(c.At).Abs() <= about {
			return true
		}
	}
	return false
}
