package conformance

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func sample(outcomes ...Outcome) *Report {
	r := NewReport("plugin", nil, 7)
	r.Implementation, r.Date = Implementation{Name: "sample", Version: "v1"}, time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	for i, o := range outcomes {
		result := Result{Check: Check{ID: "KMS2-" + string(rune('A'+i)), Profile: Core, Title: "title", Rule: "The <rule> | of it.", Source: "source"}, Outcome: o}
		switch o {
		case Failed:
			result.Evidence = &Evidence{Request: "Status", Response: `version "v1"`, Expected: `version "v2"`}
		case Passed:
		default:
			result.Reason = "a reason"
		}
		r.Results = append(r.Results, result)
	}
	r.Conclude()
	return r
}

func TestConformant(t *testing.T) {
	for _, c := range []struct {
		outcomes []Outcome
		want     bool
	}{
		{nil, false},
		{[]Outcome{Passed}, true},
		{[]Outcome{Passed, NotSupported}, true},
		{[]Outcome{NotSupported}, false},
		{[]Outcome{Passed, Skipped}, false},
		{[]Outcome{Passed, Blocked}, false},
		{[]Outcome{Passed, Failed}, false},
		{[]Outcome{Passed, Inconclusive}, false},
	} {
		if got := sample(c.outcomes...).Verdict() == Conformant; got != c.want {
			t.Errorf("%v: conformant is %v, want %v", c.outcomes, got, c.want)
		}
	}
}

// TestPartial: a report without the results of some checks of its suite is partial, also if it says that it is conformant.
func TestPartial(t *testing.T) {
	suite := func(string) []Check {
		return []Check{{ID: "KMS2-A", Profile: Core}, {ID: "KMS2-B", Profile: Core}, {ID: "KMS2-C", Profile: Extended}}
	}
	for _, c := range []struct {
		outcomes []Outcome
		want     Verdict
	}{
		{[]Outcome{Passed}, Partial},
		{[]Outcome{Passed, Passed}, Conformant}, // of the profile core
		{[]Outcome{Failed}, NotConformant},
		{[]Outcome{Inconclusive}, Undecided},
	} {
		cut, err := ReadReport(save(t, yamlOf(t, sample(c.outcomes...))), suite)
		if err != nil {
			t.Fatal(err)
		}
		again, err := ReadReport(save(t, yamlOf(t, cut)), suite)
		if err != nil {
			t.Fatal(err)
		}
		if cut.Verdict() != c.want || again.Verdict() != c.want || (cut.Profiles[0].NotRun == 1) != (len(c.outcomes) == 1) {
			t.Errorf("%v: %s, then %s, want %s: %+v", c.outcomes, cut.Verdict(), again.Verdict(), c.want, cut.Profiles)
		}
	}
}

// none is a suite of unknown checks.
func none(string) []Check { return nil }

func save(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "report.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func yamlOf(t *testing.T, r *Report) string {
	t.Helper()
	var text strings.Builder
	if err := r.Write(&text); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

func TestReportIsReadAsWritten(t *testing.T) {
	text := yamlOf(t, sample(Passed, Failed, NotSupported))
	r, err := ReadReport(save(t, text), none)
	if err != nil {
		t.Fatal(err)
	}
	if again := yamlOf(t, r); again != text {
		t.Errorf("read and written again:\n%s\nwant\n%s", again, text)
	}
}

func TestReadReportNamesTheMistake(t *testing.T) {
	good := yamlOf(t, sample(Passed, Failed))
	for mistake, want := range map[string]string{
		strings.Replace(good, "seed:", "sead:", 1):                        "sead",
		strings.Replace(good, Kind, "Pod", 1):                             `kind "Pod"`,
		strings.Replace(good, "conformant: false", "conformant: true", 1): "do not sum up",
		strings.Replace(good, "outcome: failed", "outcome: passed", 1):    "do not sum up",
		"{": "read the report",
	} {
		if _, err := ReadReport(save(t, mistake), none); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

func TestMergeKeepsAFailure(t *testing.T) {
	r := sample(Passed, Failed, Passed)
	r.Merge(sample(Passed, Passed, Failed))
	r.Merge(sample(Passed, Passed, Passed))
	for i, want := range []struct {
		outcome Outcome
		failed  int
	}{{Passed, 0}, {Failed, 1}, {Failed, 1}} {
		if got := r.Results[i]; got.Outcome != want.outcome || got.FailedRuns != want.failed || got.Runs != 3 {
			t.Errorf("%s: %s, failed in %d of %d, want %s in %d of 3", got.ID, got.Outcome, got.FailedRuns, got.Runs, want.outcome, want.failed)
		}
	}
	if r.Results[2].Evidence == nil {
		t.Error("the evidence of the second run is lost")
	}
}

func TestCompare(t *testing.T) {
	var text strings.Builder
	equal, err := Compare(&text, []*Report{sample(Passed, Passed), sample(Passed, Failed)}, false)
	if err != nil || equal || strings.Contains(text.String(), "KMS2-A") || !strings.Contains(text.String(), "KMS2-B") {
		t.Errorf("equal %v, %v:\n%s", equal, err, text.String())
	}
	if equal, err := Compare(&text, []*Report{sample(Passed), sample(Passed)}, true); err != nil || !equal {
		t.Errorf("two equal reports: %v, %v", equal, err)
	}
	other := sample(Passed)
	other.Suite = "reporter"
	if _, err := Compare(&text, []*Report{sample(Passed), other}, false); err == nil {
		t.Error("reports of two suites are compared")
	}
}

func TestViews(t *testing.T) {
	r := sample(Passed, Failed, Skipped)
	var markdown, html, text, xmlText strings.Builder
	for _, err := range []error{r.WriteMarkdown(&markdown), r.WriteHTML(&html), r.WriteJUnit(&xmlText)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	r.Print(&text)
	for name, view := range map[string]string{"markdown": markdown.String(), "html": html.String(), "text": text.String()} {
		for _, want := range []string{"KMS2-B", "NOT conformant", "v2"} {
			if !strings.Contains(view, want) {
				t.Errorf("%s has no %q:\n%s", name, want, view)
			}
		}
	}
	if want := "| KMS2-C | core | skipped: a reason | "; !strings.Contains(markdown.String(), want) {
		t.Errorf("markdown has no %q:\n%s", want, markdown.String())
	}
	if strings.Contains(html.String(), "<rule>") || strings.Contains(markdown.String(), "| The <rule> | of") {
		t.Error("a rule's text is not escaped")
	}
	if want := `<testsuites tests="3" failures="1" errors="0" skipped="1"`; !strings.Contains(xmlText.String(), want) {
		t.Errorf("JUnit %s, want %s", xmlText.String(), want)
	}
}

func TestParseProfiles(t *testing.T) {
	if p, err := ParseProfiles("core, robustness"); err != nil || len(p) != 2 || p[1] != Robustness {
		t.Errorf("%v, %v", p, err)
	}
	if _, err := ParseProfiles("cores"); err == nil {
		t.Error("an unknown profile is accepted")
	}
}

// TestSuiteHash depends on what a suite demands, and not on the words of its explanations.
func TestSuiteHash(t *testing.T) {
	of := func(c Check) string { return NewReport("plugin", []Check{c}, 1).SuiteHash }
	one := Check{ID: "A", Profile: Core, Rule: "r"}
	more := one
	more.Needs = []Capability{"command"}
	if of(one) == of(more) || of(one) != of(Check{ID: "A", Profile: Core, Rule: "r", Source: "s"}) {
		t.Error(of(one), of(more))
	}
}
