package page_test

import (
	"slices"
	"testing"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/check"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/report/page"
)

const beside = history.OpenShiftAPIServer

// besideStory is a run of two API servers.
func besideStory() *story {
	s := newStory()
	s.log = history.NewLog(nil)
	timing := contract.DefaultTiming()
	s.at(0, &history.Run{Schema: history.Schema, Scenario: "s", Backend: "local", Timing: timing, Operator: "kubeapiservers", ClusterOperator: "kube-apiserver",
		APIServers: []history.AggregatedAPIServer{{Name: beside, Operator: "openshiftapiservers", ClusterOperator: beside}}})
	return s
}

func (s *story) of(seconds float64, payload any) {
	s.at(seconds, history.Of{APIServer: beside, Payload: payload})
}

// A further API server has lanes of its own, and what happens to its plugin shades no other lane of the node.
func TestFurtherAPIServerHasItsLanes(t *testing.T) {
	s := besideStory()
	s.call(1, "cp-1", "ok")
	s.of(1.1, &history.Call{Node: "cp-1", KeyID: "1", Method: "Status", Began: at(1), Ended: at(1.1), Outcome: history.CallOK, Code: "OK", Healthz: "sealed"})
	s.of(1.2, &history.Process{Role: history.RoleAPIServer, Node: "cp-1", State: history.ProcessReady})
	s.at(1.3, &history.Object{Resource: "openshiftapiservers.operator.openshift.io", Name: "cluster",
		Conditions: []*history.Condition{{Type: contract.ConditionDegraded, Status: "True", Reason: "PluginUnhealthy"}}})
	a := history.Action{ID: "steps[0]", Verb: "inject", Target: "plugin cp-1/*", State: history.ActionBegan}
	s.of(2, &a)
	done := a
	done.State = history.ActionDone
	s.of(2.1, &done)
	v := check.Verdict{Invariants: []check.Result{{ID: "DETECTION", Status: check.Failed, Count: 1,
		Violations: []check.Violation{{Invariant: "DETECTION", At: at(2.5), Node: "cp-1", KeyID: "1", APIServer: beside, Seen: "nothing"}}}}}
	tl := page.NewTimeline(s.end(3), v, 0)

	for lane, rows := range map[string][]string{
		"node/cp-1": {"plugin 1 says"}, "node/cp-1/" + beside: {"plugin 1 says", "API server"}, "rollups/" + beside: {"Degraded"},
	} {
		for _, title := range rows {
			if row(tl, lane, title) < 0 {
				t.Errorf("no row %q in lane %s; groups %+v", title, lane, tl.Groups)
			}
		}
	}
	if r := row(tl, "rollups", "Degraded"); r >= 0 {
		t.Error("kube-apiserver's rollup has a row, and nobody said anything of it")
	}
	i := slices.IndexFunc(tl.Bands, func(b page.Band) bool { return b.Fault })
	if i < 0 || len(tl.Bands[i].Groups) != 1 || tl.Groups[tl.Bands[i].Groups[0]].ID != "node/cp-1/"+beside {
		t.Errorf("the fault shades %+v of %+v", tl.Bands, tl.Groups)
	}
	if len(tl.Marks) != 1 || tl.Marks[0].Target != row(tl, "rollups/"+beside, "Degraded") {
		t.Errorf("the violation is marked in %+v", tl.Marks)
	}
}
