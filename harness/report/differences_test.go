package report_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kmsharness/kmsharness/harness/report"
	"github.com/kmsharness/kmsharness/harness/result"
)

func outcome(status result.Status, invariants ...string) report.Outcome {
	o := report.Outcome{Status: status, Invariants: map[string]string{}}
	for i := 0; i < len(invariants); i += 2 {
		o.Invariants[invariants[i]] = invariants[i+1]
	}
	return o
}

func lines(all []report.Difference) []string {
	var out []string
	for _, d := range all {
		out = append(out, fmt.Sprintf("%s %s %s/%s hint=%v", d.Scenario, d.What, d.A, d.B, d.Hint))
	}
	return out
}

func TestCompare(t *testing.T) {
	p, f, n, c, x, i := result.Passed, result.Failed, result.NotSupported, result.CouldNotRun, result.Inconclusive, result.Interrupted
	type run = map[string]report.Outcome
	for name, x := range map[string]struct {
		a, b        run
		want, hints []string
	}{
		"the same":          {run{"s": outcome(p, "UID", "passed")}, run{"s": outcome(p, "UID", "passed")}, nil, nil},
		"both violate":      {run{"s": outcome(f, "UID", "failed")}, run{"s": outcome(f, "UID", "failed")}, nil, nil},
		"both are excused":  {run{"s": outcome(p, "UID", "excused")}, run{"s": outcome(p, "UID", "excused")}, nil, nil},
		"an expectation":    {run{"s": outcome(p, "UID", "passed")}, run{"s": outcome(f, "UID", "passed")}, []string{"s result passed/failed hint=false"}, nil},
		"an invariant":      {run{"s": outcome(p, "UID", "passed")}, run{"s": outcome(f, "UID", "failed")}, []string{"s result passed/failed hint=false", "s UID passed/violated hint=false"}, nil},
		"another invariant": {run{"s": outcome(f, "A", "failed", "B", "passed")}, run{"s": outcome(f, "A", "passed", "B", "failed")}, []string{"s A violated/passed hint=false", "s B passed/violated hint=false"}, nil},
		"an excuse":         {run{"s": outcome(p, "UID", "excused")}, run{"s": outcome(f, "UID", "failed")}, []string{"s result passed/failed hint=false", "s UID excused/violated hint=false"}, nil},
		"not supported":     {run{"s": outcome(p, "UID", "passed")}, run{"s": outcome(n)}, []string{"s result passed/not supported hint=true"}, nil},
		"could not run":     {run{"s": outcome(c)}, run{"s": outcome(f, "UID", "failed")}, []string{"s result could not run/failed hint=false"}, nil},
		"inconclusive": {run{"s": outcome(x, "UID", "passed", "CADENCE", "failed")}, run{"s": outcome(p, "UID", "passed", "CADENCE", "passed")},
			[]string{"s result inconclusive/passed hint=true"}, nil},
		"interrupted":        {run{"s": outcome(i)}, run{"s": outcome(f)}, []string{"s result interrupted/failed hint=true"}, nil},
		"absent":             {run{"s": outcome(p)}, run{"z": outcome(n)}, []string{"s result passed/absent hint=false", "z result absent/not supported hint=false"}, nil},
		"nothing to judge":   {run{"s": outcome(p, "UID", "not-judged")}, run{"s": outcome(p, "UID", "passed")}, nil, []string{"s UID not-judged/passed hint=true"}},
		"an older checker":   {run{"s": outcome(p, "UID", "passed", "NEW", "passed")}, run{"s": outcome(p, "UID", "passed")}, nil, []string{"s NEW passed/not-judged hint=true"}},
		"violated or unseen": {run{"s": outcome(f, "UID", "not-judged")}, run{"s": outcome(f, "UID", "failed")}, []string{"s UID not-judged/violated hint=false"}, nil},
	} {
		if got := lines(report.Compare(x.a, x.b, false)); !slices.Equal(got, x.want) {
			t.Errorf("%s: %q, want %q", name, got, x.want)
		}
		want := append(slices.Clone(x.want), x.hints...)
		if got := lines(report.Compare(x.a, x.b, true)); !slices.Equal(got, want) {
			t.Errorf("%s with hints: %q, want %q", name, got, want)
		}
	}
}

func TestWriteDifferences(t *testing.T) {
	var b bytes.Buffer
	count, err := report.WriteDifferences(&b, "/tmp/local", "/tmp/kind", 52, []report.Difference{
		{Scenario: "plugin-hangs", What: "result", A: "passed", B: "failed"}, {Scenario: "plugin-hangs", What: "CADENCE", A: "passed", B: "violated"},
		{Scenario: "node-removed", What: "UID", A: "not-judged", B: "passed", Hint: true}})
	want := `SCENARIO      WHAT     /tmp/local  /tmp/kind
plugin-hangs  result   passed      failed
plugin-hangs  CADENCE  passed      violated
node-removed  UID      not-judged  passed (hint)

differences: 2 in 1 of 52 scenarios, 1 hints
`
	if err != nil || count != 2 || b.String() != want {
		t.Errorf("%d, %v\n%s\nwant\n%s", count, err, b.String(), want)
	}
	b.Reset()
	if count, err := report.WriteDifferences(&b, "a", "b", 3, nil); err != nil || count != 0 || b.String() != "differences: 0 in 0 of 3 scenarios, 0 hints\n" {
		t.Errorf("%d, %v, %q", count, err, b.String())
	}
}

func TestOutcomes(t *testing.T) {
	out := t.TempDir()
	write := func(path, text string) {
		path = filepath.Join(out, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	fails := func(want string) {
		t.Helper()
		if _, err := report.Outcomes(out); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v, want one line with %q", err, want)
		}
	}
	if _, err := report.Outcomes(filepath.Join(out, "none")); err == nil || !strings.Contains(err.Error(), "expected the output folder of a run") {
		t.Error(err)
	}
	fails("no scenario has a result.json in it")
	write("a/result.json", `{"scenario":"a","status":"passed","backend":"kind"}`)
	write("a/verdict.json", `{"ok":true,"invariants":[{"id":"UID","status":"passed"}]}`)
	write("b/result.json", `{"scenario":"b","status":"not supported"}`)
	all, err := report.Outcomes(out)
	if err != nil || len(all) != 2 || all["a"].Invariants["UID"] != "passed" || all["b"].Status != result.NotSupported || len(all["b"].Invariants) != 0 {
		t.Errorf("%+v, %v", all, err)
	}
	write("b/verdict.json", `{`)
	fails("b/verdict.json: not a verdict")
	write("b/verdict.json", `{}`)
	write("c/result.json", `{}`)
	fails("c/result.json: not a result: scenario or status is missing")
	write("c/result.json", `{"scenario":"a","status":"failed"}`)
	fails("c/result.json: a second result of scenario a")
	write("c/result.json", `[`)
	fails("c/result.json: not a result")
}
