package health

import (
	"strings"

	"github.com/kmsharness/kmsharness/conformance"
	"github.com/kmsharness/kmsharness/harness/check"
	"github.com/kmsharness/kmsharness/harness/history"
)

// runs is the check without which no other can show anything.
func runs(prefix, subject string) Check {
	return Check{
		Check: conformance.Check{
			ID: prefix + "-RUNS", Profile: conformance.Core, Title: "It runs until it is asked to end",
			Rule:        subject + " does not end by itself, or runs again before a report is stale.",
			Source:      sourceOwn,
			Consequence: "The kubelet restarts it with growing delays, and what it should do is not done meanwhile.",
		},
		Claims: []Claim{invariant(check.NoExitID)}, Scenarios: []string{"steady-state"},
	}
}

// endsInTimeID is the invariant of endsInTime.
const endsInTimeID = "ENDS-IN-TIME"

// ignoredTerm is how a history describes the end of a process that had to be killed.
const ignoredTerm = "ignored SIGTERM"

// endsInTime demands that processes of a role end when they are asked to. The harness gives them twice the two seconds before it kills them.
func endsInTime(role string) check.Invariant {
	return check.Invariant{
		ID:        endsInTimeID,
		Statement: "a " + role + " ends within 2 s of a SIGTERM",
		Source:    sourceOwn,
		Judge: func(facts *check.Facts) (f check.Finding) {
			for _, e := range facts.Events() {
				if e.Process == nil || e.Process.Role != role {
					continue
				}
				ignored := strings.Contains(e.Process.Detail, ignoredTerm)
				if ignored || e.Process.State == history.ProcessStopped {
					f.JudgedAt(e.At, e.At)
				}
				if ignored {
					f.Violate(check.Violation{At: e.At, Seq: e.Seq, Node: e.Process.Node, Seen: "the " + role + " had to be killed: " + e.Process.Detail, Allowed: "an end within 2 s of SIGTERM"})
				}
			}
			return f
		},
	}
}
