package report_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/report"
	"github.com/kmsharness/kmsharness/harness/result"
)

func instant() time.Time { return time.Date(2026, 5, 8, 12, 0, 0, 0, time.UTC) }

func sample(name string, status result.Status) result.Result {
	r := result.Result{Scenario: name, Title: "It holds.", Area: "plugin", Backend: "local", Status: status, Began: instant(),
		Took: 12340 * time.Millisecond, Expectations: 4, Checks: 120, Reproduce: "kmsharness run " + name + ".yaml --backend local", Dir: "out/" + name}
	switch status {
	case result.Failed:
		r.Failures = []result.Failure{{ID: "CADENCE", Rule: "silent", At: instant().Add(3 * time.Second), Offset: 3 * time.Second, Where: "cp-2/1",
			Seen: "no write for 4.2s \x1b[31m", Allowed: "one within 2.6s", More: 3}}
	case result.NotSupported, result.CouldNotRun:
		r.Reasons = []string{"no load balancer"}
	case result.Inconclusive:
		r.Reasons = []string{"a machine was starved"}
	case result.Interrupted:
		r.Reasons = []string{"the run was ended"}
	}
	return r
}

func summary(statuses ...result.Status) report.Summary {
	s := report.Summary{Backend: "local", Took: 83 * time.Second}
	for i, status := range statuses {
		s.Results = append(s.Results, sample(string(rune('a'+i)), status))
	}
	return s
}

func TestLineAndExitCode(t *testing.T) {
	p, f, n, c, u, x, i := result.Passed, result.Failed, result.NotSupported, result.CouldNotRun, result.NotBegun, result.Inconclusive, result.Interrupted
	again := summary(p, p, x)
	again.Results[0].JudgedAgain, again.Results[2].JudgedAgain = true, true
	rooted := summary(p, n, n)
	rooted.Results[1].Reasons = []string{"a port below 1024, which needs root"}
	tests := []struct {
		s    report.Summary
		line string
		code int
	}{
		{summary(p, p, n), "e2e: 2 passed, 0 failed, 1 not supported on local in 1m23s", 0},
		{summary(p, f), "e2e: 1 passed, 1 failed, 0 not supported on local in 1m23s", 1},
		{summary(f, c), "e2e: 0 passed, 1 failed, 0 not supported, 1 COULD NOT RUN on local in 1m23s", 1},
		{summary(p, c), "e2e: 1 passed, 0 failed, 0 not supported, 1 COULD NOT RUN on local in 1m23s", 2},
		{summary(), "e2e: 0 passed, 0 failed, 0 not supported on local in 1m23s", 1},
		{summary(n), "e2e: 0 passed, 0 failed, 1 not supported on local in 1m23s", 1},
		{summary(p, u, u), "e2e: 1 passed, 0 failed, 0 not supported, 2 NOT BEGUN on local in 1m23s", 2},
		{summary(f, u), "e2e: 0 passed, 1 failed, 0 not supported, 1 NOT BEGUN on local in 1m23s", 1},
		{summary(p, x), "e2e: 1 passed, 0 failed, 0 not supported, 1 INCONCLUSIVE on local in 1m23s", 2},
		{summary(x), "e2e: 0 passed, 0 failed, 0 not supported, 1 INCONCLUSIVE on local in 1m23s", 2},
		{summary(p, i, i), "e2e: 1 passed, 0 failed, 0 not supported, 2 interrupted on local in 1m23s", 2},
		{summary(p, f, x, i, i, u), "e2e: 1 passed, 1 failed, 0 not supported, 1 INCONCLUSIVE, 2 interrupted, 1 NOT BEGUN on local in 1m23s", 1},
		{again, "e2e: 2 passed, 0 failed, 0 not supported, 1 INCONCLUSIVE, 2 judged again on local in 1m23s", 2},
		{summary(u), "e2e: 0 passed, 0 failed, 0 not supported, 1 NOT BEGUN on local in 1m23s", 2},
		{summary(p, p, p, p, p, p, p, p, p, u, n), "e2e: 9 passed, 0 failed, 1 not supported, 1 NOT BEGUN on local in 1m23s", 0},
		{summary(p, p, p, p, p, p, p, p, u, n), "e2e: 8 passed, 0 failed, 1 not supported, 1 NOT BEGUN on local in 1m23s", 2},
		{rooted, "e2e: 1 passed, 0 failed, 2 not supported (1: needs root) on local in 1m23s", 0},
	}
	for _, tt := range tests {
		if tt.s.Line() != tt.line || tt.s.ExitCode() != tt.code {
			t.Errorf("%s, exit %d; expected %s, exit %d", tt.s.Line(), tt.s.ExitCode(), tt.line, tt.code)
		}
	}
}

func TestText(t *testing.T) {
	var b bytes.Buffer
	if err := summary(result.Passed, result.Failed, result.NotSupported).WriteText(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"plugin  a         passed         12.3s  4 expectations, 120 checks", "b: FAILED on local in 12.3s",
		"✗ CADENCE/silent cp-2/1 at +3.000s (12:00:03.000Z)", "seen:    no write for 4.2s", "allowed: one within 2.6s",
		"and 3 more of CADENCE", "reproduce: kmsharness run b.yaml --backend local", "artifacts: out/b", "c: NOT SUPPORTED", "no load balancer"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
	if !strings.HasSuffix(b.String(), "\ne2e: 1 passed, 1 failed, 1 not supported on local in 1m23s\n") {
		t.Errorf("last line of\n%s", b.String())
	}
	hostile := summary(result.Failed)
	hostile.Results[0].Scenario, hostile.Results[0].Area, hostile.Results[0].Reproduce = "a\x1b[31m", "\x1b]0;b\x07", "kmsharness \u202e"
	if err := hostile.WriteText(&b); err != nil || strings.ContainsAny(b.String(), "\x1b\x07\u202e") {
		t.Errorf("an escape sequence reaches the terminal, %v", err)
	}
	b.Reset()
	again := summary(result.Passed, result.Inconclusive)
	again.Results[0].JudgedAgain = true
	if err := again.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"a         passed (judged again alone)", "judged again alone; the first try was inconclusive: out/a/inconclusive", "b: INCONCLUSIVE on local"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
	b.Reset()
	if err := summary().WriteText(&b); err != nil || !strings.Contains(b.String(), "No scenario ran") {
		t.Errorf("%v\n%s", err, b.String())
	}
}

func TestJUnit(t *testing.T) {
	var b bytes.Buffer
	s := summary(result.Passed, result.Failed, result.NotSupported, result.CouldNotRun)
	s.Results[0].Form = history.FormHealthReports
	if err := s.WriteJUnit(&b); err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Tests  int `xml:"tests,attr"`
		Fails  int `xml:"failures,attr"`
		Errors int `xml:"errors,attr"`
		Skips  int `xml:"skipped,attr"`
		Cases  []struct {
			Class      string `xml:"classname,attr"`
			Name       string `xml:"name,attr"`
			Properties []struct {
				Name  string `xml:"name,attr"`
				Value string `xml:"value,attr"`
			} `xml:"properties>property"`
			Failure string `xml:"failure"`
			Skipped struct {
				Message string `xml:"message,attr"`
			} `xml:"skipped"`
		} `xml:"testsuite>testcase"`
	}
	if err := xml.Unmarshal(b.Bytes(), &doc); err != nil {
		t.Fatalf("%v\n%s", err, b.String())
	}
	if doc.Tests != 4 || doc.Fails != 1 || doc.Errors != 1 || doc.Skips != 1 || len(doc.Cases) != 4 {
		t.Errorf("%+v", doc)
	}
	if of := doc.Cases[0].Properties; len(of) != 1 || of[0].Name != "form" || of[0].Value != history.FormHealthReports || len(doc.Cases[1].Properties) != 0 {
		t.Errorf("properties %+v, %+v", of, doc.Cases[1].Properties)
	}
	if c := doc.Cases[1]; c.Class != "kmsharness.plugin" || c.Name != "b" || !strings.Contains(c.Failure, "CADENCE/silent") {
		t.Errorf("%+v", c)
	}
	if doc.Cases[2].Skipped.Message != "no load balancer" {
		t.Errorf("%+v", doc.Cases[2])
	}
	b.Reset()
	if err := summary(result.Inconclusive, result.Interrupted).WriteJUnit(&b); err != nil || !strings.Contains(b.String(), `failures="0" errors="1" skipped="1"`) ||
		!strings.Contains(b.String(), `<error type="inconclusive" message="inconclusive: a machine was starved">`) || !strings.Contains(b.String(), `<skipped message="the run was ended">`) {
		t.Errorf("%v:\n%s", err, b.String())
	}
	b.Reset()
	if err := summary().WriteJUnit(&b); err != nil || !strings.Contains(b.String(), `failures="1"`) {
		t.Errorf("%v: an empty run is not a failure:\n%s", err, b.String())
	}
}

// The last lines say what happened: a control plane that did not start is no matter of labels, and what was not begun is listed once.
func TestTheLastLinesSayWhatHappened(t *testing.T) {
	n, c, u, i := result.NotSupported, result.CouldNotRun, result.NotBegun, result.Interrupted
	for _, tt := range []struct {
		s    report.Summary
		want string
	}{
		{summary(), "No scenario ran, which is a failure: none was selected. Look at the files or labels.\n"},
		{summary(n, n), "No scenario ran, which is a failure: the backend supports none of those that were selected.\n"},
		{summary(c, n, u), "No scenario was judged: 1 could not run, for the reasons above.\n"},
		{summary(i, u), "No scenario was judged: the run ended before.\n"},
		{summary(result.Passed, u, u), "\nnot begun, because it is why: b, c\n"},
	} {
		for k := range tt.s.Results {
			if tt.s.Results[k].Status == u {
				tt.s.Results[k].Reasons = []string{"it is why"}
			}
		}
		var text strings.Builder
		if err := tt.s.WriteText(&text); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(text.String(), tt.want) || tt.s.Count(result.Passed) == 0 && strings.Count(text.String(), "No scenario") != 1 {
			t.Errorf("no %q in\n%s", tt.want, text.String())
		}
	}
}

func TestCollect(t *testing.T) {
	out := t.TempDir()
	for i, status := range []result.Status{result.Passed, result.Failed} {
		r := sample(string(rune('a'+i)), status)
		r.Began = instant().Add(time.Duration(i) * time.Minute)
		if err := r.Save(filepath.Join(out, r.Scenario)); err != nil {
			t.Fatal(err)
		}
	}
	s, err := report.Collect(out)
	if err != nil || len(s.Results) != 2 || s.Took != time.Minute+12340*time.Millisecond || s.Results[1].Failures[0].More != 3 {
		t.Errorf("%+v, %v", s, err)
	}
	if err := os.WriteFile(filepath.Join(out, "a", result.ResultFile), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err = report.Collect(out); err == nil || !strings.Contains(err.Error(), "not a result") {
		t.Errorf("half a file: %v", err)
	}
	if err := s.SaveJUnit(out); err != nil {
		t.Error(err)
	}
}

func TestMarkdown(t *testing.T) {
	text := summary(result.Passed, result.Failed, result.CouldNotRun).Markdown("all")
	for _, want := range []string{"### ❌ kmsharness: 2 of 3 did not pass\n", "| b | local | CADENCE/silent cp-1/2 | +3.000s |", "**1 passed, 1 failed, 0 not supported, 1 COULD NOT RUN** on local in 1m23s",
		"<details><summary>b on local: failed</summary>", "and 3 more of it", "<details><summary>All 3 results</summary>"} {
		if !strings.Contains(text, strings.Replace(want, "cp-1/2", "cp-2/1", 1)) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if table, counts := strings.Index(text, "| b |"), strings.Index(text, "**1 passed"); table > counts {
		t.Error("what failed does not come first")
	}
	if text := summary(result.Passed, result.Inconclusive, result.Interrupted).Markdown(""); !strings.HasPrefix(text, "### ❌ kmsharness: 2 of 3 did not pass") || !strings.Contains(text, "0 not supported, 1 INCONCLUSIVE, 1 interrupted**") {
		t.Errorf("neither passed nor failed:\n%s", text)
	}
	if text := summary(result.Passed).Markdown(""); !strings.HasPrefix(text, "### ✅ kmsharness: all 1 passed") || strings.Contains(text, "❌") {
		t.Errorf("a good run:\n%s", text)
	}
	if text := summary().Markdown(""); !strings.HasPrefix(text, "### ❌ kmsharness: No scenario ran") {
		t.Errorf("an empty run:\n%s", text)
	}
}

// A comment has a limit, and texts of plugins in it must neither draw tables nor call people.
func TestMarkdownIsBounded(t *testing.T) {
	var s report.Summary
	for i := range 500 {
		r := sample("scenario-"+strings.Repeat("x", i%9), result.Failed)
		for n := range 40 {
			r.Failures = append(r.Failures, result.Failure{ID: "X", Seen: strings.Repeat("</details> | @team `", 50+n)})
		}
		s.Results = append(s.Results, r)
	}
	text := s.Markdown("")
	if len(text) > 65000 || !strings.Contains(text, "Details of ") {
		t.Errorf("%d bytes", len(text))
	}
	if strings.Contains(text, "@team") || strings.Count(text, "</details>") != strings.Count(text, "<details>") {
		t.Error("a text of a plugin is not escaped")
	}
}

func TestMachine(t *testing.T) {
	s := summary(result.Passed, result.Failed)
	s.Results[0].Covers = []string{"S0-02", "S0-01"}
	var data bytes.Buffer
	err := report.NewMachine(s, "all", []report.MachineRun{{Column: "local", Result: s.Results[1]}}, []string{"S1-02", "S0-01", "S0-02", "S1-01"}).Write(&data)
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Schema string         `json:"schema"`
		OK     bool           `json:"ok"`
		Counts map[string]int `json:"counts"`
		Runs   []struct {
			Column, Scenario, Status string
			Failures                 []struct{ ID string }
		} `json:"runs"`
		Statements, NotExercised []string
	}
	if err := json.Unmarshal(data.Bytes(), &got); err != nil || got.Schema != report.SummarySchema || got.OK || got.Counts["failed"] != 1 || got.Counts["could not run"] != 0 {
		t.Errorf("%+v, %v", got, err)
	}
	if !slices.Equal(got.Statements, []string{"S0-01", "S0-02"}) || !slices.Equal(got.NotExercised, []string{"S1-01", "S1-02"}) {
		t.Errorf("statements %q, not exercised %q", got.Statements, got.NotExercised)
	}
	if len(got.Runs) != 1 || got.Runs[0].Scenario != "b" || got.Runs[0].Failures[0].ID != "CADENCE" {
		t.Errorf("%+v", got.Runs)
	}
}
