package coverage

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/kmsharness/kmsharness/harness/scenario"
)

// Table prints one line per scenario; a wide one also has the statements that the scenario covers, and its title.
func Table(w io.Writer, entries []Entry, wide bool) error {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprint(t, "SCENARIO\tAREA\tTOPOLOGY\tFAULTS\tBACKENDS")
	if wide {
		fmt.Fprint(t, "\tCOVERS\tTITLE")
	}
	fmt.Fprintln(t)
	for _, e := range entries {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s", e.Scenario.Name, e.Scenario.Area, e.Topology(), orDash(e.Faults()), orDash(e.Backends))
		if wide {
			fmt.Fprintf(t, "\t%s\t%s", orDash(e.Scenario.Covers), e.Scenario.Title)
		}
		fmt.Fprintln(t)
	}
	return t.Flush()
}

// Statements prints each statement with the scenarios that cover it.
func Statements(w io.Writer, statements []Statement, all []*scenario.Scenario) error {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "ID\tSTATEMENT\tSCENARIOS")
	for _, s := range statements {
		var names []string
		for _, x := range all {
			if slices.Contains(x.Covers, s.ID) {
				names = append(names, x.Name)
			}
		}
		fmt.Fprintf(t, "%s\t%s\t%s\n", s.ID, s.Text, orDash(names))
	}
	return t.Flush()
}

func orDash(words []string) string { return cmp.Or(strings.Join(words, " "), "-") }

// Topology in short: control planes, plugins on each if there are several, their provider, competing aggregators, a cold start, the typed form.
func (e Entry) Topology() string {
	t := e.Scenario.Topology
	out := fmt.Sprintf("%d nodes", t.ControlPlanes)
	if t.ControlPlanes == 1 {
		out = "1 node"
	}
	if n := len(t.KeyIDs); n > 1 {
		out += fmt.Sprintf(", %d plugins", n)
	}
	if t.Profile != "" {
		out += ", " + t.Profile
	}
	if t.Aggregators > 1 {
		out += fmt.Sprintf(", %d aggregators", t.Aggregators)
	}
	if t.Start == "stopped" {
		out += ", cold"
	}
	return out
}
