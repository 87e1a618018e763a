package report

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"

	"github.com/kmsharness/kmsharness/harness/check"
	"github.com/kmsharness/kmsharness/harness/result"
)

// Words of a comparison that are no status of their own.
const (
	Absent   = "absent"   // the run has no such scenario
	Violated = "violated" // an invariant that failed: the word for scenarios would read like a result
)

// Difference is one thing that two runs of the same scenario do not agree on.
type Difference struct {
	Scenario string `json:"scenario"`
	What     string `json:"what"` // "result", or the ID of an invariant
	A        string `json:"a"`
	B        string `json:"b"`
	// Hint: one run held, and the other had nothing to judge by. That is not a contradiction.
	Hint bool `json:"hint,omitempty"`
}

// Compare lists what two runs do not agree on, by scenario, the result first. Hints are left out unless asked for, but for a scenario
// that one of the backends does not support: nothing was judged there that could differ, and still everybody should see it.
func Compare(a, b map[string]Outcome, hints bool) []Difference {
	all := []Difference{}
	for _, name := range unionOfKeys(a, b) {
		x, y := a[name], b[name]
		if x.label() != y.label() {
			all = append(all, Difference{Scenario: name, What: "result", A: x.label(), B: y.label(), Hint: unjudged(x, y)})
		}
		if len(x.Invariants) == 0 || len(y.Invariants) == 0 || x.Status == result.Inconclusive || y.Status == result.Inconclusive {
			continue // one was not judged at all, or does not count, which the result says
		}
		for _, id := range unionOfKeys(x.Invariants, y.Invariants) {
			d := Difference{Scenario: name, What: id, A: invariantLabel(x.Invariants[id]), B: invariantLabel(y.Invariants[id])}
			d.Hint = d.A != Violated && d.B != Violated && (d.A == string(check.NotJudged) || d.B == string(check.NotJudged))
			if d.A != d.B && (hints || !d.Hint) {
				all = append(all, d)
			}
		}
	}
	return all
}

// unjudged: one run has the scenario and no verdict on it, for a reason that its result gives: the backend cannot run it, the run was over before
// its turn or its end, or the machine was starved.
func unjudged(x, y Outcome) bool {
	none := func(s result.Status) bool { return s.Skipped() || s == result.Inconclusive || s == result.Interrupted }
	return x.Status != "" && y.Status != "" && (none(x.Status) || none(y.Status))
}

func (o Outcome) label() string {
	if o.Status == "" {
		return Absent
	}
	return string(o.Status)
}

// invariantLabel: an invariant that a run does not know, because its checker is older, was not judged.
func invariantLabel(status string) string {
	switch status {
	case string(check.Failed):
		return Violated
	case "":
		return string(check.NotJudged)
	}
	return status
}

func unionOfKeys[V any](a, b map[string]V) []string {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return slices.Sorted(maps.Keys(all))
}

// WriteDifferences writes a table, if there is anything in it, and a last line with the counts. It says how many differences
// are no hints.
func WriteDifferences(w io.Writer, nameA, nameB string, scenarios int, all []Difference) (count int, err error) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	if len(all) > 0 {
		fmt.Fprintf(table, "SCENARIO\tWHAT\t%s\t%s\n", nameA, nameB)
	}
	differing := map[string]bool{}
	for _, d := range all {
		note := ""
		if d.Hint {
			note = " (hint)"
		} else {
			count++
			differing[d.Scenario] = true
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s%s\n", d.Scenario, d.What, d.A, d.B, note)
	}
	if len(all) > 0 {
		fmt.Fprintln(table)
	}
	if err := table.Flush(); err != nil {
		return count, err
	}
	_, err = fmt.Fprintf(w, "differences: %d in %d of %d scenarios, %d hints\n", count, len(differing), scenarios, len(all)-count)
	return count, err
}

func CountScenarios(a, b map[string]Outcome) int { return len(unionOfKeys(a, b)) }
