package check

import (
	"slices"
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/history"
)

// NoExitID is the invariant that a process under test violates which ended by itself. Everything else can follow from that.
const NoExitID = "NO-EXIT"

// maxOutput bounds what a violation shows of a process's output, in code points.
const maxOutput = 400

func noExit() Invariant {
	return Invariant{
		ID:        NoExitID,
		Statement: "a process under test that ends by itself runs again before its reports are stale",
		Source:    "docs/decisions/0007-invariants-and-verdicts.md",
		Judge:     judgeNoExit,
	}
}

// judgeNoExit counts the processes under test that were started. Who restarts what ends is not known; it may take as long as a report stays fresh.
func judgeNoExit(v *Facts) (f Finding) {
	for n := range v.events {
		e := &v.events[n]
		if e.Process == nil || !slices.Contains(v.rolesUnderTest(), e.Process.Role) {
			continue
		}
		p := *e.Process
		switch p.State {
		case history.ProcessStarted:
			f.JudgedAt(e.At, e.At)
		case history.ProcessExited:
			until := e.At.Add(v.run.Timing.StaleBound())
			if until.After(v.complete.to) || asked(v, p.Node, e.At) || v.processes.revising(p.Node).has(e.At) || startedAgain(v, v.events[n:], p, until) {
				continue
			}
			seen := process{p.Role, p.Node, p.KeyID, p.Instance}.String() + " ended by itself: " + contract.SafeText(p.Detail, maxShown)
			if output := contract.SafeText(p.Output, maxOutput); output != "" {
				seen += "; the end of its output: " + output
			}
			f.Violate(Violation{At: e.At, Seq: e.Seq, Node: p.Node, KeyID: p.KeyID, Seen: seen, Allowed: "an end that an action asks for, or a start within " + short(v.run.Timing.StaleBound())})
		}
	}
	return f
}

// rolesUnderTest are those of the programs that a run judges.
func (v *Facts) rolesUnderTest() []string {
	roles := []string{history.RoleReporter, history.RoleAggregator, history.RoleOperator}
	if !v.run.Plugin.IsZero() { // a fake plugin may be made to crash
		roles = append(roles, history.RolePlugin)
	}
	return roles
}

// startedAgain reports whether a process that ended came back without an action that started it, such as one that heals at the end of a scenario.
func startedAgain(v *Facts, events []history.Event, p history.Process, until time.Time) bool {
	return slices.ContainsFunc(events, func(e history.Event) bool {
		s := e.Process
		return s != nil && s.State == history.ProcessStarted && s.Role == p.Role && s.Node == p.Node && s.KeyID == p.KeyID && s.Instance == p.Instance && !e.At.After(until) &&
			!slices.ContainsFunc(v.plugins.actions, func(a action) bool {
				return a.Verb == "start" && !e.At.Before(a.from) && (!a.done || !e.At.After(a.to)) && concerns(v, a, p.Node)
			})
	})
}
