package coverage

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/kmsharness/kmsharness/harness/backend/kind"
	"github.com/kmsharness/kmsharness/harness/backend/local"
	"github.com/kmsharness/kmsharness/harness/cluster/virtual"
	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/internal/printer"
)

// Statement is something that the sources promise, in this project's words. scenarios/statements.yaml has all, and says what the fields mean.
type Statement struct {
	ID       string  `json:"id"`
	Text     string  `json:"text"`
	CaughtBy []Catch `json:"caughtBy,omitempty"`
	// Reports are public ones, as OWNER/REPOSITORY#NUMBER.
	Reports []string `json:"reports,omitempty"`
	Weak    string   `json:"weak,omitempty"`
	Outside string   `json:"outside,omitempty"`
}

// Catch is a wrong subject and what it fails by.
type Catch struct {
	Wrong string `json:"wrong"`
	By    string `json:"by"`
}

// Go reports whether it is caught by a Go test.
func (c Catch) Go() bool { return strings.Contains(c.By, ".Test") }

// everywhere reports whether it is caught by an invariant, which judges every run. A step judges the runs of its scenario.
func (c Catch) everywhere() bool {
	return !strings.Contains(c.By, "steps[") && !strings.Contains(c.By, ".")
}

// Subject is a wrong subject, as the lists of package mutants have it.
type Subject struct {
	Scenario string // that brings it out; empty for one of the suite for plugins
	Caught   []string
}

// Covered is a statement, and where it is judged.
type Covered struct {
	Statement
	// Status is covered, weak or outside.
	Status string `json:"status"`
	// Scenarios cite the statement. A citation alone judges nothing.
	Scenarios []string `json:"scenarios"`
	// Gate has where a rule of CaughtBy judges correct subjects at each commit, Night where it does so at night only: backends, PluginSuite, GoTests.
	Gate  []string `json:"gate"`
	Night []string `json:"night"`
}

// What judges without a scenario.
const (
	PluginSuite = "plugin"
	GoTests     = "test"
)

// Statements are all statements, and where each is judged. Subjects are by name.
func Statements(statements []Statement, all []*scenario.Scenario, subjects map[string]Subject) ([]Covered, error) {
	entries, err := Entries(all)
	if err != nil {
		return nil, err
	}
	byName := map[string]*scenario.Scenario{}
	for _, x := range all {
		byName[x.Name] = x
	}
	covered := make([]Covered, len(statements))
	for i, s := range statements {
		c := Covered{Statement: s, Status: "covered"}
		if s.Weak != "" {
			c.Status = "weak"
		} else if s.Outside != "" {
			c.Status = "outside"
		}
		for n, x := range all {
			if slices.Contains(x.Covers, s.ID) {
				c.Scenarios = append(c.Scenarios, x.Name)
			}
			if slices.ContainsFunc(s.CaughtBy, func(by Catch) bool { return judges(by, s.ID, x, byName[subjects[by.Wrong].Scenario]) }) {
				c.judgedIn(x, entries[n].Backends)
			}
		}
		for _, by := range s.CaughtBy {
			if by.Go() {
				c.Gate = append(c.Gate, GoTests)
			} else if subjects[by.Wrong].Scenario == "" {
				c.Gate = append(c.Gate, PluginSuite)
			}
		}
		c.Night = slices.DeleteFunc(c.Night, func(b string) bool { return slices.Contains(c.Gate, b) })
		c.Gate, c.Night = inOrder(c.Gate), inOrder(c.Night)
		covered[i] = c
	}
	return covered, nil
}

// judges reports whether a scenario judges a statement by the rule that catches a wrong subject in its own scenario: that one does, and by an invariant also
// one that cites the statement and has the same kind of cluster. In another kind an invariant may have nothing to judge.
func judges(by Catch, statement string, x, own *scenario.Scenario) bool {
	return own != nil && (x == own || by.everywhere() && slices.Contains(x.Covers, statement) &&
		x.Topology.ByOperator() == own.Topology.ByOperator() && x.Topology.Connectivity == own.Topology.Connectivity)
}

// judgedIn adds the backends of a scenario. The gate (.ci/run) has all scenarios on sim, those that only kind can judge on kind, and the others on local, but
// for slow ones.
func (c *Covered) judgedIn(s *scenario.Scenario, backends []string) {
	quickOn := local.Name
	if s.OnlyKind != "" {
		quickOn = kind.Name
	}
	for _, b := range backends {
		if b == virtual.Name || b == quickOn && !slices.Contains(s.Labels, "slow") {
			c.Gate = append(c.Gate, b)
		} else {
			c.Night = append(c.Night, b)
		}
	}
}

// inOrder has each place once.
func inOrder(places []string) []string {
	order := []string{virtual.Name, local.Name, kind.Name, PluginSuite, GoTests}
	slices.SortFunc(places, func(a, b string) int { return slices.Index(order, a) - slices.Index(order, b) })
	return slices.Compact(places)
}

// StatementTable has a row for each statement.
func StatementTable(all []Covered) printer.Table {
	t := printer.Table{Columns: []string{"ID", "STATUS", "GATE", "NIGHT", "SCENARIOS", "WRONG SUBJECT (CAUGHT BY)", "STATEMENT", "REPORTS", "REASON", "CITED BY"}, Narrow: 6}
	for _, s := range all {
		var caught []string
		for _, c := range s.CaughtBy {
			caught = append(caught, c.Wrong+" ("+c.By+")")
		}
		reason := s.Weak + s.Outside
		t.Rows = append(t.Rows, []string{s.ID, s.Status, orDash(s.Gate), orDash(s.Night), strconv.Itoa(len(s.Scenarios)), cmp.Or(strings.Join(caught, ", "), "none: "+reason), s.Text, orDash(s.Reports), cmp.Or(reason, "-"), orDash(s.Scenarios)})
	}
	return t
}
