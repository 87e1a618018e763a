package trial

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
)

// Table writes a line for each mutant, why survivors survived, and the count. It says whether all were killed.
func Table(w io.Writer, outcomes []Outcome) (all bool, err error) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "MUTANT\tFAMILY\tCAUGHT BY\tSCENARIO\tBACKEND\tTIME")
	killed := 0
	for _, o := range outcomes {
		by := strings.Join(o.By, ", ")
		if o.Killed() {
			killed++
		} else {
			by = "SURVIVED"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", o.Name, o.Family, by, cmp.Or(o.Scenario, "any"), o.Backend, o.Took.Round(time.Millisecond))
	}
	if err := table.Flush(); err != nil {
		return false, err
	}
	for _, o := range outcomes {
		if !o.Killed() {
			fmt.Fprintf(w, "\n%s survived: %s\n%s\n%s\n", o.Name, o.Survived, o.Mistake, o.Result.Text())
		}
	}
	_, err = fmt.Fprintf(w, "\nkilled %d of %d\n", killed, len(outcomes))
	return killed == len(outcomes) && killed > 0, err
}
