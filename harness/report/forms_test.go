package report

import (
	"strings"
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/result"
)

// TestForms: the wire form is shown where it is not the default.
func TestForms(t *testing.T) {
	for _, c := range []struct {
		forms      []string
		table, end string
	}{
		{[]string{history.FormConditions}, "AREA  SCENARIO  RESULT", " on local in "},
		{[]string{history.FormConditions, history.FormHealthReports}, "AREA  SCENARIO  FORM", " on local (conditions, healthreports) in "},
	} {
		s := Summary{Backend: "local"}
		for _, f := range c.forms {
			s.Results = append(s.Results, result.Result{Scenario: "s", Area: "a", Backend: "local", Form: f, Status: result.Passed})
		}
		var text strings.Builder
		if err := s.WriteText(&text); err != nil || !strings.Contains(text.String(), c.table) || !strings.Contains(text.String(), c.end) {
			t.Errorf("%q: %v\n%s", c.forms, err, text.String())
		}
	}
}

// TestOperatorUnderTest: the table of a run and the text of a result name the operator that is not this project's.
func TestOperatorUnderTest(t *testing.T) {
	r := result.Result{Scenario: "s", Area: "a", Backend: "kind", Operator: "o:dev", Status: result.Passed}
	var text strings.Builder
	if err := (Summary{Backend: "kind", Results: []result.Result{r}}).WriteText(&text); err != nil || !strings.Contains(text.String(), " on kind with operator o:dev in ") {
		t.Errorf("%v\n%s", err, text.String())
	}
	if got := r.On(); got != "kind with operator o:dev" {
		t.Error(got)
	}
}

// TestCauseBeforeWhatFollows: a comment on a pull request names the cause, also where what follows from it was seen before.
func TestCauseBeforeWhatFollows(t *testing.T) {
	s := Summary{Results: []result.Result{{Scenario: "s", Status: result.Failed, Failures: []result.Failure{
		{ID: "ACCEPTED", At: time.Unix(5, 0), Seen: "refused"}, {ID: "CADENCE", At: time.Unix(4, 0), Seen: "silent", Because: "writes were refused"}}}}}
	text := s.Markdown("")
	if table := strings.Split(text, "\n"); !strings.Contains(strings.Join(table[:6], "\n"), "ACCEPTED") || !strings.Contains(text, "because: writes were refused") {
		t.Error(text)
	}
}
