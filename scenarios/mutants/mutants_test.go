package mutants_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/kmsharness/kmsharness/harness/backend/local"
	"github.com/kmsharness/kmsharness/harness/check"
	"github.com/kmsharness/kmsharness/harness/cluster/virtual"
	"github.com/kmsharness/kmsharness/harness/coverage"
	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/scenarios"
	"github.com/kmsharness/kmsharness/scenarios/mutants"
)

// TestList: what an entry names exists, and every family has some.
func TestList(t *testing.T) {
	families, names := map[mutants.Family]int{}, map[string]bool{}
	for _, m := range mutants.All() {
		if families[m.Family]++; names[m.Name] {
			t.Errorf("%s: there are two of this name", m.Name)
		}
		names[m.Name] = true
		if len(m.Caught) == 0 || m.Mistake == "" {
			t.Errorf("%s: expected a mistake and what catches it", m.Name)
		}
		s := find(t, m.Scenario)
		if slices.ContainsFunc(s.Excused, func(e scenario.Excuse) bool { return slices.Contains(m.Caught, e.Invariant) }) {
			t.Errorf("%s: scenario %s excuses what must catch it", m.Name, m.Scenario)
		}
		for _, id := range unmatched(m.Caught, s) {
			t.Errorf("%s: nothing in a run of %s can fail as %s", m.Name, m.Scenario, id)
		}
		if lacks := lacks(t, m, s); len(lacks) > 0 {
			t.Errorf("%s: %v", m.Name, lacks)
		}
	}
	for _, f := range []mutants.Family{mutants.Reporter, mutants.Aggregator, mutants.Plugin, mutants.Operator, mutants.Cluster} {
		if families[f] == 0 {
			t.Errorf("no mutant of the family %s", f)
		}
	}
}

// unmatched returns the ids that are neither invariants nor steps of a scenario. TestSimulated and make mutants compare all others with a run.
func unmatched(ids []string, s *scenario.Scenario) []string {
	known := append(steps(s.Steps, "steps"), "before.expect", "after.expect", "after.holds")
	for _, i := range check.Invariants() {
		known = append(known, i.ID)
	}
	return slices.DeleteFunc(slices.Clone(ids), func(id string) bool {
		id, _, _ = strings.Cut(id, "#") // the round of a repetition
		return slices.Contains(known, id)
	})
}

// steps returns the ids under which actions and expectations fail.
func steps(all []scenario.Step, id string) (ids []string) {
	for n, s := range all {
		id := fmt.Sprintf("%s[%d]", id, n)
		switch {
		case s.Action != nil:
			ids = append(ids, id)
		case s.Expect != nil:
			ids = append(ids, id+"."+s.Expect.Mode.Keyword())
		case s.Parallel != nil:
			ids = append(ids, steps(s.Parallel, id+".parallel")...)
		case s.Repeat != nil:
			ids = append(append(ids, id+".repeat.until"), steps(s.Repeat.Steps, id+".repeat")...)
		}
	}
	return ids
}

func TestIDsThatCannotMatch(t *testing.T) {
	s := find(t, "plugin-hangs") // inject, expect, …
	good := []string{"CADENCE", "before.expect", "after.holds", "steps[0]", "steps[1].expect", "steps[1].expect#2"}
	bad := []string{"steps[0].expect", "steps[1]", "steps[1].never", "steps[99].expect", "KMSPluginDegraded", "after.expects"}
	if got := unmatched(append(good, bad...), s); !slices.Equal(got, bad) {
		t.Errorf("%q, want %q", got, bad)
	}
}

// lacks is what its backend cannot do of the scenario, or does not have of the mutant.
func lacks(t *testing.T, m mutants.Mutant, s *scenario.Scenario) []string {
	if m.Simulated() {
		return virtual.New(m.Virtual()).Unsupported(s)
	}
	dir := t.TempDir()
	if m.Program != "" {
		// A mutant of its own, or a good program with the wrong flags.
		_, wrong := os.Stat(filepath.Join("cmd", m.Program, "main.go"))
		_, good := os.Stat(filepath.Join("../../cmd", m.Program, "main.go"))
		if wrong != nil && good != nil {
			t.Errorf("%s: %v", m.Name, wrong)
		}
		if err := os.WriteFile(filepath.Join(dir, m.Program), nil, 0o755); err != nil { // not built, but found
			t.Fatal(err)
		}
	}
	b, err := local.New(m.Options(dir))
	if err != nil {
		t.Fatalf("%s: %v", m.Name, err)
	}
	return b.Unsupported(s)
}

// TestEveryInvariantCanFail: each is among what catches a simulated mutant, unless none can reach it.
func TestEveryInvariantCanFail(t *testing.T) {
	by := map[string]int{}
	for _, m := range mutants.All() {
		for _, id := range m.Caught {
			if m.Simulated() {
				by[id]++
			}
		}
	}
	for _, i := range check.Invariants() {
		why, unreachable := beyond()[i.ID]
		if unreachable == (by[i.ID] > 0) {
			t.Errorf("%s: %d mutants are caught by it; beyond their reach: %q", i.ID, by[i.ID], why)
		}
	}
}

func find(t *testing.T, name string) *scenario.Scenario {
	t.Helper()
	all := catalogue(t)
	i := slices.IndexFunc(all, func(s *scenario.Scenario) bool { return s.Name == name })
	if i < 0 {
		t.Fatalf("there is no scenario %s", name)
	}
	return all[i]
}

// load reads the catalogue once: nobody changes it.
var load = sync.OnceValues(scenarios.Load)

func catalogue(t *testing.T) []*scenario.Scenario {
	t.Helper()
	all, err := load()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestStatements: each statement has a wrong subject, or says why not. Each wrong subject exists, is expected to fail by what the statement says, and does so
// in a scenario that cites the statement.
func TestStatements(t *testing.T) {
	statements, err := scenarios.Statements()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range statements {
		for _, mistake := range mistakes(t, s) {
			t.Errorf("%s: %s", s.ID, mistake)
		}
	}
}

func TestWrongStatements(t *testing.T) {
	catch := func(wrong, by string) coverage.Statement {
		return coverage.Statement{ID: "S0-07", Text: "x", CaughtBy: []coverage.Catch{{Wrong: wrong, By: by}}}
	}
	for want, s := range map[string]coverage.Statement{
		"":                           catch("only-news", "CADENCE"),
		"no wrong subject":           {ID: "S0-07", Text: "x"},
		"outside, and judged":        {ID: "S0-07", Text: "x", Outside: "x", CaughtBy: catch("only-news", "CADENCE").CaughtBy},
		"no text":                    {ID: "S0-07", Weak: "x"},
		"no wrong subject only-new":  catch("only-new", "CADENCE"),
		"by [CADENCE], not FORMAT":   catch("only-news", "FORMAT"),
		"does not cite it":           catch("uid-dropped", "UID"),
		"by [KMS2-HOSTILE-UID-MISSI": catch("uid-shortened", "KMS2-STATUS-VERSION"),
		"no func TestRong(":          catch("one-socket-for-all", "operator/model.TestRong"),
		"no two-sockets":             catch("two-sockets", "operator/model.TestWrong"),
	} {
		if got := strings.Join(mistakes(t, s), ", "); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// mistakes returns what is wrong with a statement.
func mistakes(t *testing.T, s coverage.Statement) (out []string) {
	judged := len(s.CaughtBy) > 0 || s.Weak != ""
	switch {
	case s.Text == "":
		out = append(out, "no text")
	case !judged && s.Outside == "":
		out = append(out, "no wrong subject, and no reason")
	case judged && s.Outside != "":
		out = append(out, "outside, and judged")
	}
	subjects := mutants.Subjects()
	for _, c := range s.CaughtBy {
		x, known := subjects[c.Wrong]
		switch {
		case c.Go():
			out = append(out, named(t, c)...)
		case !known:
			out = append(out, "no wrong subject "+c.Wrong)
		case !slices.Contains(x.Caught, c.By):
			out = append(out, fmt.Sprintf("%s is caught by %v, not %s", c.Wrong, x.Caught, c.By))
		case x.Scenario != "" && !slices.Contains(find(t, x.Scenario).Covers, s.ID):
			out = append(out, fmt.Sprintf("%s is caught in %s, which does not cite it", c.Wrong, x.Scenario))
		}
	}
	return out
}

// named returns what of a Go test does not exist: the test, or its wrong subject, which is a text in the tests of the directory or a file of their data.
func named(t *testing.T, c coverage.Catch) (out []string) {
	dir, test, _ := strings.Cut(c.By, ".Test")
	dir = filepath.Join("../..", dir)
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	if f := "func Test" + test + "("; !strings.Contains(all.String(), f) {
		out = append(out, "no "+f)
	}
	if _, err := os.Stat(filepath.Join(dir, c.Wrong)); err != nil && !strings.Contains(all.String(), `"`+c.Wrong+`"`) {
		out = append(out, "no "+c.Wrong)
	}
	return out
}

// beyond are the invariants that no mutant can break, and why.
func beyond() map[string]string {
	return map[string]string{
		"NO-EXIT":          "a simulated program does not end by itself; ends-at-once does on a real control plane",
		"NO-FORGED-EXCUSE": "it is about events of the harness's own recorders, which no subject can write any more; known-bad histories have forged ones",
		"NOTHING-RAN":      "it is about the harness. A subject that does nothing at all still leaves the actions and expectations of the scenario in the history",
	}
}
