package page_test

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/harness/check"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/report/page"
	"github.com/kmsharness/kmsharness/harness/result"
)

func written(t *testing.T, runs ...page.Run) string {
	t.Helper()
	var b bytes.Buffer
	if err := (page.Page{Runs: runs, Counts: "one verdict", Coverage: "all"}).Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func someRun(t *testing.T, column, name string, status result.Status, text string) page.Run {
	t.Helper()
	s := newStory()
	s.call(1, "cp-1", text)
	v := check.Verdict{OK: status == result.Passed, Detection: check.Latency{Count: 2, Bound: 4 * time.Second, Samples: []time.Duration{time.Second, 3 * time.Second}}}
	r := page.Run{Column: column, Verdict: &v, Result: result.Result{Scenario: name, Area: "plugin", Title: text, Backend: column, Status: status}}
	if status == result.Failed {
		r.Result.Failures = []result.Failure{{ID: "FIRST", At: at(5), Offset: 5 * time.Second, Seen: text, Allowed: "well"}, {ID: "LATER", At: at(2), Offset: 2 * time.Second, Seen: text}}
	}
	if err := r.SetTimeline(page.NewTimeline(s.end(6), v, 0)); err != nil {
		t.Fatal(err)
	}
	return r
}

// The page names the operator under test beside the numbers of its run.
func TestOperatorUnderTestIsNamed(t *testing.T) {
	r := someRun(t, "kind", "s", result.Passed, "ok")
	r.Result.Operator = "quay.io/o:dev"
	if text := written(t, r); !strings.Contains(text, "operator quay.io/o:dev") {
		t.Error("no operator quay.io/o:dev in the page")
	}
}

func TestMatrix(t *testing.T) {
	html := written(t, someRun(t, "local", "a", result.Passed, "x"), someRun(t, "sim", "a", result.Failed, "x"), someRun(t, "sim", "b", result.NotSupported, "x"),
		someRun(t, "sim", "c", result.Inconclusive, "x"), someRun(t, "sim", "d", result.Interrupted, "x"))
	for _, want := range []string{
		`<a class="tag passed" href="#local.a">✓ passed</a>`, `<a class="tag failed" href="#sim.a">✗ failed</a>`, `<a class="tag not-supported" href="#sim.b">– not supported</a>`,
		`<section class="run" id="sim.a"`, "one verdict",
		`<a class="tag inconclusive" href="#sim.c">? inconclusive</a>`, `<a class="tag interrupted" href="#sim.d">■ interrupted</a>`, `Detection on sim: 8 measured, min 1s, median 1s, max 3s, bound 4s`,
	} {
		if !strings.Contains(html, want) {
			t.Errorf("no %s", want)
		}
	}
	if first, later := strings.Index(html, "FIRST"), strings.Index(html, "LATER"); first < 0 || later < first {
		t.Errorf("failures are not in the order of the result: %d, %d", first, later)
	}
}

// TestMatrixOfForms: a scenario that ran in both wire forms has a row for each; where all ran in the default one, nothing is said of it.
func TestMatrixOfForms(t *testing.T) {
	conditions, typed := someRun(t, "sim", "a", result.Passed, "x"), someRun(t, "sim", "a@healthreports", result.Passed, "x")
	conditions.Result.Form, typed.Result.Form = history.FormConditions, history.FormHealthReports
	for _, want := range []string{`<th scope="col">Form</th>`, `>a</th><td>conditions</td>`, `>a@healthreports</th><td>healthreports</td>`, `colspan="3"`} {
		if html := written(t, conditions, typed); !strings.Contains(html, want) {
			t.Errorf("no %s", want)
		}
	}
	if html := written(t, conditions); strings.Contains(html, `<th scope="col">Form</th>`) {
		t.Error("a column for the form, which is the default one")
	}
}

// What plugins say may hold anything: it must stay text.
func TestHostileTexts(t *testing.T) {
	hostile := `</script><script>alert(1)</script><img src=x onerror=alert(1)>"'` + "\x00\x1b[31m"
	html := written(t, someRun(t, "sim", "a", result.Failed, hostile))
	for _, bad := range []string{"<script>alert", "<img src=x", "\x00", "\x1b"} {
		if strings.Contains(html, bad) {
			t.Errorf("%q is in the page", bad)
		}
	}
}

// The page is complete in itself: it names nothing that would be fetched.
func TestNothingIsFetched(t *testing.T) {
	html := written(t, someRun(t, "sim", "a", result.Failed, "x"))
	for _, m := range regexp.MustCompile(`(?i)(src|href|url|import)\s*[=(]\s*["']?(https?:)?//[^"')\s]*`).FindAllString(html, -1) {
		t.Errorf("the page would fetch %s", m)
	}
	if again := written(t, someRun(t, "sim", "a", result.Failed, "x")); again != html {
		t.Error("the same run gives another page")
	}
}
