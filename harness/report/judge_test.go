package report

import (
	"strings"
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/harness/check"
	"github.com/kmsharness/kmsharness/harness/history"
)

// TestAVerdictInTheWordsOfAResult: who cannot be told from the machine is not blamed, and has not passed.
func TestAVerdictInTheWordsOfAResult(t *testing.T) {
	failed := []history.Event{{At: time.Unix(1, 0), Expectation: &history.Expectation{ID: "steps[1].expect", Detail: "was never true"}}}
	broken := []check.Result{{ID: "CADENCE", Status: check.Failed, Judged: 3, Count: 1}}
	for name, c := range map[string]struct {
		verdict check.Verdict
		status  Status
		blamed  int
	}{
		"passed":    {check.Verdict{OK: true}, Passed, 0},
		"failed":    {check.Verdict{Invariants: broken}, Failed, 2},
		"undecided": {check.Verdict{Undecided: []string{"the machine is too busy"}, Invariants: broken}, CouldNotRun, 0},
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
		if undecided := strings.Join(r.Reasons, ""); undecided != strings.Join(c.verdict.Undecided, "") {
			t.Errorf("%s: reasons %q", name, undecided)
		}
	}
}
