package trial

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
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
