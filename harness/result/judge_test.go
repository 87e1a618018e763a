package result

import (
	"strings"
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/harness/check"
	"github.com/kmsharness/kmsharness/harness/history"
)

// TestAVerdictInTheWordsOfAResult: a run that CPU starvation explains is no failure, and no pass.
func TestAVerdictInTheWordsOfAResult(t *testing.T) {
	failed := []history.Event{{At: time.Unix(1, 0), Expectation: &history.Expectation{ID: "steps[1].expect", Detail: "was never true"}}}
	broken := []check.Result{{ID: "CADENCE", Status: check.Failed, Judged: 3, Count: 1}}
	for name, c := range map[string]struct {
		verdict check.Verdict
		status  Status
		blamed  int
	}{
		"passed":       {check.Verdict{OK: true}, Passed, 0},
		"failed":       {check.Verdict{Invariants: broken, Failing: []check.Failing{{ID: "CADENCE"}, {ID: "steps[1].expect"}}}, Failed, 2},
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

// TestHouseRulesAreApart: what only this project demands is no failure of others' programs, and what failed in the same way again is named once.
func TestHouseRulesAreApart(t *testing.T) {
	at := func(n int, x history.Expectation) history.Event {
		return history.Event{At: time.Unix(int64(n), 0), Expectation: &x}
	}
	house := history.Expectation{ID: "steps[0].expect", House: true}
	events := []history.Event{at(1, house), at(2, history.Expectation{ID: "steps[1].expect"}), at(3, history.Expectation{ID: "steps[2].expect", Repeats: "steps[1].expect"})}
	var r Result
	r.Judge(check.Verdict{Outcome: check.RunFailed, Problems: []string{"two"}, Failing: []check.Failing{{ID: "steps[1].expect"}, {ID: "steps[2].expect"}}, Expectations: check.Expectations{House: []history.Expectation{house}},
		Invariants: []check.Result{{ID: "TRUTHFUL-PROBE", Status: check.Passed, House: []check.Violation{{House: "a rule"}}}}}, events)
	if len(r.Failures) != 1 || r.Failures[0].ID != "steps[1].expect" || strings.Join(r.Failures[0].Repeated, "") != "steps[2].expect" {
		t.Errorf("failures %+v", r.Failures)
	}
	if len(r.House) != 2 || r.House[0].ID != house.ID || r.House[1].House != "a rule" {
		t.Errorf("house rules %+v", r.House)
	}
	text := r.Text()
	for _, want := range []string{"✗ steps[1].expect", "and again: steps[2].expect", "--strict", "○ steps[0].expect", "○ TRUTHFUL-PROBE", "rule:    a rule"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

// TestWrongForm: a reporter that writes the other form is judged by nothing.
func TestWrongForm(t *testing.T) {
	var r Result
	r.Judge(check.Verdict{Outcome: check.RunFailed, WrongForm: history.FormHealthReports, Problems: []string{"much"}}, nil)
	if r.Status != CouldNotRun || !r.Unsuitable || len(r.Failures) > 0 || !strings.Contains(strings.Join(r.Reasons, ""), "--contract healthreports") {
		t.Errorf("%+v", r)
	}
}
