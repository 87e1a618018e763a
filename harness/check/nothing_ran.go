package check

import (
	"slices"

	"github.com/kmsharness/kmsharness/harness/history"
)

func nothingRan() Invariant {
	return Invariant{
		ID:        "NOTHING-RAN",
		Statement: "a run without actions, without observations, without audited requests or without a single judged expectation is a failure",
		Source:    "invariants, NOTHING-RAN",
		Judge:     judgeNothingRan,
	}
}

// audited requests are what every rule about writes is judged by: an audit log that nobody read would satisfy all of them.
const audited = "audited request of the watched identities or to the watched objects"

func judgeNothingRan(v *Facts) (f Finding) {
	counts := map[string]int{}
	for n := range v.events {
		e := &v.events[n]
		switch e.Kind {
		case history.KindAction:
			if e.Action.State == history.ActionDone {
				counts["action that was done"]++
			}
		case history.KindExpectation:
			if !e.Expectation.NotJudged {
				counts["judged expectation"]++
			}
		case history.KindObject:
			counts["observed state of an object"]++
		case history.KindRequest:
			counts[audited]++
		case history.KindCall:
			counts["call of a plugin"]++
		case history.KindDecision:
			counts["decision of the operator"]++
		}
	}
	for _, what := range wanted(v) {
		f.JudgedAt(v.complete.from, v.complete.to)
		if counts[what] == 0 {
			f.Violate(Violation{At: v.complete.to, since: v.complete.from, Seen: "no " + what + " in the whole run", Allowed: "at least one"})
		}
	}
	return f
}

// wanted is what every run has at least one of. An operator may have been asked for nothing that needs a plugin; then it has decided that.
func wanted(v *Facts) []string {
	all := []string{"action that was done", "judged expectation", "observed state of an object", audited}
	operated := v.run.Lifecycle == history.LifecycleOperator
	if operated {
		all = append(all, "decision of the operator")
	}
	if !operated || expectsPlugins(v) {
		all = append(all, "call of a plugin")
	}
	return all
}

// expectsPlugins says whether any node was to have a plugin at any time.
func expectsPlugins(v *Facts) bool {
	for n := range v.events {
		if e := &v.events[n]; e.Kind == history.KindExpected && slices.ContainsFunc(e.Expected.Nodes, func(x history.ExpectedNode) bool { return len(x.KeyIDs) > 0 }) {
			return true
		}
	}
	return false
}
