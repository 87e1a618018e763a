package trial

import (
	"fmt"
	"io"
	"strings"

	"github.com/kmsharness/kmsharness/harness/coverage"
	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/scenarios/mutants"
)

// NotCovered marks a statement that no mutant breaks: nothing shows that a run would notice.
const NotCovered = "NOT COVERED"

// Breakers are, by statement, the mutants that break it (mutants.Mutant.Breaks).
func Breakers(all []mutants.Mutant, catalogue []*scenario.Scenario) map[string][]string {
	scenarios := map[string]*scenario.Scenario{}
	for _, s := range catalogue {
		scenarios[s.Name] = s
	}
	out := map[string][]string{}
	for _, m := range all {
		if s := scenarios[m.Scenario]; s != nil {
			for _, id := range m.Breaks(s) {
				out[id] = append(out[id], m.Name)
			}
		}
	}
	return out
}

// Statements writes, for each statement, the killed mutants that break it, and marks those without one.
func Statements(w io.Writer, statements []coverage.Statement, catalogue []*scenario.Scenario, outcomes []Outcome) error {
	var killed []mutants.Mutant
	seen := map[string]bool{}
	for _, o := range outcomes {
		if o.Killed() && !seen[o.Name] { // once, also where it was tried in two forms
			seen[o.Name] = true
			killed = append(killed, o.Mutant)
		}
	}
	by := Breakers(killed, catalogue)
	var b strings.Builder
	b.WriteString("\nSTATEMENT  BROKEN BY\n")
	without := 0
	for _, s := range statements {
		names := by[s.ID]
		if len(names) == 0 {
			without++
			names = []string{NotCovered + ": " + s.Text}
		}
		fmt.Fprintf(&b, "%-9s  %s\n", s.ID, strings.Join(names, ", "))
	}
	fmt.Fprintf(&b, "\n%d of %d statements have a mutant that breaks them\n", len(statements)-without, len(statements))
	_, err := io.WriteString(w, b.String())
	return err
}
