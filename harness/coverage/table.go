package coverage

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/kmsharness/kmsharness/harness/backend/choose"
	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/internal/printer"
	"github.com/kmsharness/kmsharness/internal/text"
)

// Entry is a scenario as tables have it.
type Entry struct {
	Name     string   `json:"name"`
	Area     string   `json:"area"`
	Title    string   `json:"title"`
	Topology string   `json:"topology"` // in short
	Faults   []string `json:"faults"`   // kinds
	Backends []string `json:"backends"` // that can run it
	Covers   []string `json:"covers"`   // ids of statements
}

// Entries of scenarios, in their order. Nothing is started.
func Entries(all []*scenario.Scenario) ([]Entry, error) {
	var backends []choose.Backend
	for _, name := range choose.Names() {
		b, err := choose.New(name, choose.Options{})
		if err != nil {
			return nil, fmt.Errorf("table of scenarios: %w", err)
		}
		backends = append(backends, b)
	}
	entries := make([]Entry, len(all))
	for i, s := range all {
		entries[i] = Entry{Name: s.Name, Area: s.Area, Title: s.Title, Topology: topology(s.Topology), Faults: faults(s), Covers: s.Covers}
		for _, b := range backends {
			if len(b.Unsupported(s)) == 0 {
				entries[i].Backends = append(entries[i].Backends, b.Name())
			}
		}
	}
	return entries, nil
}

// faults are the kinds of faults that a scenario injects and the other harm that it does, in the order of their names.
func faults(s *scenario.Scenario) (kinds []string) {
	for _, a := range s.Actions() {
		if kind := scenario.Harm(a); kind != "" {
			kinds = append(kinds, kind)
		}
	}
	slices.Sort(kinds)
	return slices.Compact(kinds)
}

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
	out := text.Count(t.ControlPlanes, "node")
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
