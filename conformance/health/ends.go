package health

import (
	"strings"

	"github.com/kmsharness/kmsharness/harness/check"
	"github.com/kmsharness/kmsharness/harness/history"
)

// ignoredTerm is how a history describes the end of a process that had to be killed.
const ignoredTerm = "ignored SIGTERM"

// endsInTime demands that processes of a role end when they are asked to. The harness gives them twice the two seconds before it kills them.
func endsInTime(role string) check.Invariant {
	return check.Invariant{
		ID:        "ENDS-IN-TIME",
		Statement: "a " + role + " ends within 2 s of a SIGTERM",
		Source:    "docs/contract.md",
		Judge: func(facts *check.Facts) (f check.Finding) {
			for _, e := range facts.Events {
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
