package check

import (
	"github.com/kmsharness/kmsharness/harness/history"
)

func nothingRan() Invariant {
	return Invariant{
		ID:        "NOTHING-RAN",
		Statement: "a run without actions, without observations or without a single judged expectation is a failure",
		Source:    "invariants, NOTHING-RAN",
		judge:     judgeNothingRan,
	}
}

func judgeNothingRan(v *view) (f Finding) {
	counts := map[string]int{}
	for n := range v.events {
		e := &v.events[n]
		switch e.Kind {
		case history.KindAction:
			if e.Action.State == history.ActionDone {
				counts["action that was done"]++
			}
		case history.KindExpectation:
			counts["judged expectation"]++
		case history.KindObject:
			counts["observed state of an object"]++
		case history.KindCall:
			counts["call of a plugin"]++
		}
	}
	for _, what := range []string{"action that was done", "judged expectation", "observed state of an object", "call of a plugin"} {
		f.judgedAt(v.whole.from, v.whole.to)
		if counts[what] == 0 {
			f.violate(Violation{At: v.whole.to, Seen: "no " + what + " in the whole run", Allowed: "at least one"})
		}
	}
	return f
}
