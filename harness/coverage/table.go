package coverage

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// Table prints one line per scenario.
func Table(w io.Writer, entries []Entry) error {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "SCENARIO\tAREA\tTOPOLOGY\tFAULTS\tBACKENDS")
	for _, e := range entries {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", e.Scenario.Name, e.Scenario.Area, e.Topology(), cmp.Or(strings.Join(e.Faults(), " "), "-"),
			cmp.Or(strings.Join(e.Backends, " "), "-"))
	}
	return t.Flush()
}

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
