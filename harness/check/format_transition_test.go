package check

import (
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/history"
)

// A reporter keeps the lastTransitionTime that it finds: its own, or, when it starts, that of somebody who has changed its entry meanwhile.
func TestLastTransitionTimeAfterAStranger(t *testing.T) {
	began := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	own, foreign, another := contract.FormatTime(began), contract.FormatTime(began.Add(time.Second)), contract.FormatTime(began.Add(2*time.Second))
	for last, good := range map[string]bool{own: true, foreign: true, another: false} {
		v := &Facts{objects: &objectFacts{}, requests: &requestFacts{}}
		for i, transition := range []string{own, foreign, last} {
			at := began.Add(time.Duration(i) * time.Second)
			v.objects.reports = map[string][]reportChange{"cp-1": append(v.objects.reports["cp-1"], reportChange{at, int64(i), &report{at: at, foreign: i == 1, cond: &history.Condition{
				Status: contract.ReporterConditionStatus, Reason: contract.ReporterConditionReason, LastTransitionTime: transition,
				Message: encode([]wire{{"1", "kek-1", "healthy", own, ""}})}}})}
		}
		if f := judgeFormat(v); (len(f.Violations) == 0) != good {
			t.Errorf("%s after %s and a stranger's %s: good %v, expected %v; %v", last, own, foreign, !good, good, f.Violations)
		}
	}
}
