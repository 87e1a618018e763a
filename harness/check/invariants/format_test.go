package invariants

import (
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/check/facts"
	"github.com/kmsharness/kmsharness/harness/check/span"
	"github.com/kmsharness/kmsharness/harness/history"
)

// A reporter keeps the lastTransitionTime that it finds: its own, or, when it starts, that of somebody who has changed its entry meanwhile.
func TestLastTransitionTimeAfterAStranger(t *testing.T) {
	began := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	own, foreign, another := contract.FormatTime(began), contract.FormatTime(began.Add(time.Second)), contract.FormatTime(began.Add(2*time.Second))
	for last, good := range map[string]bool{own: true, foreign: true, another: false} {
		v := facts.New(nil)
		for i, transition := range []string{own, foreign, last} {
			r := &facts.Report{Foreign: i == 1, Condition: &history.Condition{Status: contract.ReporterConditionStatus, Reason: contract.ReporterConditionReason, LastTransitionTime: transition,
				Message: `[{"keyID":"1","kekID":"kek-1","status":"healthy","lastChecked":"` + own + `"}]`}}
			v.Reports["cp-1"] = span.Append(v.Reports["cp-1"], facts.State[facts.Report]{Span: span.New(began.Add(time.Duration(i)*time.Second), began.Add(time.Hour)), Value: r})
		}
		if f := judgeFormat(v); (len(f.Violations) == 0) != good {
			t.Errorf("%s after %s and a stranger's %s: good %v, expected %v; %v", last, own, foreign, !good, good, f.Violations)
		}
	}
}
