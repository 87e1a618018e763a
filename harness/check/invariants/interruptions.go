package invariants

import (
	"slices"
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/check/facts"
	"github.com/kmsharness/kmsharness/harness/check/text"
	"github.com/kmsharness/kmsharness/harness/history"
)

// NoExitID is the invariant that a process under test violates which ended by itself. Everything else can follow from that.
const NoExitID = "NO-EXIT"

// maxOutput bounds what a violation shows of a process's output, in code points.
const maxOutput = 400

// judgeNoExit counts the processes under test that were started. Programs are restarted by what runs them (a kubelet,
// systemd, the harness), which is not known; it may take as long as a report stays fresh, so that no reader of the
// rollup learns of it.
func judgeNoExit(v *facts.Facts) (f Finding) {
	for e := range v.Each(history.KindProcess) {
		p := e.Process
		if !slices.Contains(RolesUnderTest(v), p.Role) {
			continue
		}
		switch p.State {
		case history.ProcessStarted:
			f.JudgedAt(e.At, e.At)
		case history.ProcessExited:
			until := e.At.Add(v.StaleBound())
			if until.After(v.Period.To) || v.Actions.AskedToEnd(p.Node, e.At) || v.Revisions[p.Node].Contains(e.At) || startedAgain(v, e, until) {
				continue
			}
			seen := facts.ProcessOf(p).String() + " ended by itself: " + contract.SafeText(p.Detail, text.MaxShown)
			if output := contract.SafeText(p.Output, maxOutput); output != "" {
				seen += "; the end of its output: " + output
			}
			f.Violate(Violation{At: e.At, Seq: e.Seq, Node: p.Node, KeyID: p.KeyID, Seen: seen, Allowed: "an end that an action asks for, or a start within " + text.Short(v.StaleBound())})
		}
	}
	return f
}

// RolesUnderTest returns the roles of the programs that a run judges. A fake plugin ends when a fault says so, and is
// not judged.
func RolesUnderTest(v *facts.Facts) []string {
	roles := []string{history.RoleReporter, history.RoleAggregator, history.RoleOperator}
	if !v.Run.Plugin.IsZero() { // a fake plugin may be made to crash
		roles = append(roles, history.RolePlugin)
	}
	return roles
}

// startedAgain reports whether a process came back after its end without an action that started it, such as one that heals at the end of a scenario.
func startedAgain(v *facts.Facts, end *history.Event, until time.Time) bool {
	p, ended := facts.ProcessOf(end.Process), false
	for e := range v.Each(history.KindProcess) {
		ended = ended || e == end
		if ended && facts.ProcessOf(e.Process) == p && e.Process.State == history.ProcessStarted && !e.At.After(until) && !slices.ContainsFunc(v.Actions.All, func(a facts.Action) bool {
			return a.Verb == "start" && !e.At.Before(a.From) && (!a.Done || !e.At.After(a.To)) && v.Actions.Concerns(a, p.Node)
		}) {
			return true
		}
	}
	return false
}

// Time in which a program is paused or was asked to end is not judged by other invariants. A program that could claim
// such a time would pass them all.
func judgeNoForgedExcuse(v *facts.Facts) (f Finding) {
	for _, e := range v.Interruptions {
		f.JudgedAt(e.At, e.At)
		if !e.Forged {
			continue
		}
		want := "an action under way that ends it"
		if e.Pause {
			want = "an action under way that pauses it, its pod or its node"
		}
		p := e.Process
		f.Violate(Violation{At: e.At, Seq: e.Seq, Node: p.Node, KeyID: p.KeyID, Allowed: want,
			Seen: facts.ProcessOf(p).String() + " is " + p.State + ", and no action is under way that can have caused it"})
	}
	return f
}
