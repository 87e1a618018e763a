package report

import (
	"strings"
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/harness/check"
	"github.com/kmsharness/kmsharness/harness/history"
)

// TestAVerdictInTheWordsOfAResult: what CPU starvation explains is no failure, and no pass.
func TestAVerdictInTheWordsOfAResult(t *testing.T) {
	failed := []history.Event{{At: time.Unix(1, 0), Expectation: &history.Expectation{ID: "steps[1].expect", Detail: "was never true"}}}
	broken := []check.Result{{ID: "CADENCE", Status: check.Failed, Judged: 3, Count: 1}}
	for name, c := range map[string]struct {
		verdict check.Verdict
		status  Status
		blamed  int
	}{
		"passed":       {check.Verdict{OK: true}, Passed, 0},
		"failed":       {check.Verdict{Invariants: broken}, Failed, 2},
		"inconclusive": {check.Verdict{Outcome: check.RunInconclusive, Inconclusive: []string{"cp-2's reporter was starved"}}, Inconclusive, 0},
	} {
		events := failed
		if c.verdict.OK {
			events = nil
		}
		var r Result
		r.Judge(c.verdict, events)
		if r.Status != c.status || len(r.Failures) != c.blamed {
			t.Errorf("%s: %+v", name, r)
		}
		if reasons := strings.Join(r.Reasons, ""); reasons != strings.Join(c.verdict.Inconclusive, "") {
			t.Errorf("%s: reasons %q", name, reasons)
		}
	}
}
