package trial

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/kmsharness/kmsharness/harness/coverage"
)

// NotCovered marks a statement that no mutant breaks: nothing shows that a run would notice.
const NotCovered = "NOT COVERED"

// Statements writes, for each statement, its wrong subjects that were killed, and marks those without one.
func Statements(w io.Writer, statements []coverage.Statement, outcomes []Outcome) error {
	survived := map[string]bool{} // of those that were tried, in one form or both
	for _, o := range outcomes {
		survived[o.Name] = survived[o.Name] || !o.Killed()
	}
	var b strings.Builder
	b.WriteString("\nSTATEMENT  BROKEN BY\n")
	without := 0
	for _, s := range statements {
		var names []string
		for _, c := range s.CaughtBy {
			if alive, tried := survived[c.Wrong]; tried && !alive {
				names = append(names, c.Wrong)
			}
		}
		if len(names) == 0 {
			without++
			names = []string{NotCovered + ": " + cmp.Or(s.Weak, s.Outside, s.Text)}
		}
		fmt.Fprintf(&b, "%-9s  %s\n", s.ID, strings.Join(names, ", "))
	}
	fmt.Fprintf(&b, "\n%d of %d statements have a mutant that breaks them\n", len(statements)-without, len(statements))
	_, err := io.WriteString(w, b.String())
	return err
}
