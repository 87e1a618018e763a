package invariants

import (
	"slices"

	"github.com/kmsharness/kmsharness/harness/check/facts"
	"github.com/kmsharness/kmsharness/harness/history"
)

// audited requests are what every rule about writes is judged by: without an audit log all of those rules would hold.
const audited = "audited request of the watched identities or to the watched objects"

// evidence is what an event shows by being there.
var evidence = map[history.Kind]string{
	history.KindObject: "observed state of an object", history.KindRequest: audited,
	history.KindCall: "call of a plugin", history.KindDecision: "decision of the operator",
}

// It is the invariant that fails if the harness itself is broken, for example when a recorder did not start. A green run
// must be evidence.
func judgeNothingRan(v *facts.Facts) (f Finding) {
	found, operated, plugins := map[string]bool{}, v.Run.Lifecycle == history.LifecycleOperator, false
	for n := range v.Events {
		switch e := &v.Events[n]; e.Kind {
		case history.KindAction:
			found["action that was done"] = found["action that was done"] || e.Action.State == history.ActionDone
		case history.KindExpectation:
			found["judged expectation"] = found["judged expectation"] || !e.Expectation.NotJudged
		case history.KindExpected:
			plugins = plugins || slices.ContainsFunc(e.Expected.Nodes, func(x history.ExpectedNode) bool { return len(x.KeyIDs) > 0 })
		default:
			found[evidence[e.Kind]] = true
		}
	}
	wanted := []string{"action that was done", "judged expectation", "observed state of an object", audited}
	if v.Run.Observed {
		wanted, operated, plugins = wanted[2:3], true, false
	} else if operated {
		wanted = append(wanted, "decision of the operator")
	}
	if !operated || plugins { // an operator may have been asked for nothing that needs a plugin; then it has decided that
		wanted = append(wanted, "call of a plugin")
	}
	for _, what := range wanted {
		f.judgedIn(v.Period)
		if !found[what] {
			f.Violate(Violation{At: v.Period.To, Since: v.Period.From, Seen: "no " + what + " in the whole run", Allowed: "at least one"})
		}
	}
	return f
}
