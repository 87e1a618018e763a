package coverage

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/internal/printer"
)

// Table has a row for each scenario.
func Table(entries []Entry) printer.Table {
	t := printer.Table{Columns: []string{"SCENARIO", "AREA", "BACKENDS", "FAULTS", "TOPOLOGY", "COVERS", "TITLE"}, Narrow: 4}
	for _, e := range entries {
		t.Rows = append(t.Rows, []string{e.Name, e.Area, orDash(e.Backends), orDash(e.Faults), e.Topology, orDash(e.Covers), e.Title})
	}
	return t
}

func orDash(words []string) string { return cmp.Or(strings.Join(words, " "), "-") }

// topology in short: control planes, plugins on each if there are several, their provider, competing aggregators, a cold start, the typed form.
func topology(t scenario.Topology) string {
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
