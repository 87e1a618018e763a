package trial

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/kmsharness/kmsharness/harness/coverage"
)

// Table writes a line for each mutant, why survivors survived, and the count. It says whether all were killed.
func Table(w io.Writer, outcomes []Outcome) (all bool, err error) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "MUTANT\tFAMILY\tPRINTED FIRST\tCAUGHT BY\tSCENARIO\tBACKEND\tTIME")
	killed, named := 0, 0
	for _, o := range outcomes {
		by := strings.Join(o.By, ", ")
		if o.Killed() {
			killed++
		} else {
			by = "SURVIVED"
		}
		first := o.First()
		if o.Named() {
			named++
		} else {
			first += " (not " + o.Mutant.Cause() + ")"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", o.Name, o.Family, first, by, o.Scenario, o.Backend, o.Took.Round(time.Millisecond))
	}
	if err := table.Flush(); err != nil {
		return false, err
	}
	for _, o := range outcomes {
		if !o.Killed() {
			fmt.Fprintf(w, "\n%s survived: %s\n%s\n%s\n", o.Name, o.Survived, o.Mistake, o.Result.Text())
		}
	}
	_, err = fmt.Fprintf(w, "\nnamed first %d of %d, killed %d of %d\n", named, len(outcomes), killed, len(outcomes))
	return killed == len(outcomes) && killed > 0, err
}

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
