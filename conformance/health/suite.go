package health

import (
	"embed"
	"fmt"
	"slices"

	"sigs.k8s.io/yaml"

	"github.com/kmsharness/kmsharness/conformance"
	"github.com/kmsharness/kmsharness/harness/check"
	"github.com/kmsharness/kmsharness/harness/history"
)

//go:embed *.yaml
var tables embed.FS // go:embed needs a variable

// Names of the suites.
const (
	Reporter   = history.RoleReporter
	Aggregator = history.RoleAggregator
	Operator   = history.RoleOperator // of this project: no other can take its place yet
)

// Suite is a list of checks for one kind of subject.
type Suite struct {
	Name   string  `json:"-"`
	Checks []Check `json:"checks"`
	// Invariants judge each run in addition to those of harness/check.
	Invariants []check.Invariant `json:"-"`
	// FirstFailureEnds ends a scenario at the first expectation that failed. Otherwise its steps go on, so that one run has all findings; where each
	// step waits for the one before, the rest would only wait for its bounds.
	FirstFailureEnds bool `json:"firstFailureEnds,omitempty"`
}

// Check is one rule, and what of a run of scenarios shows whether it is kept.
type Check struct {
	conformance.Check
	// Scenarios of the catalogue that exercise the rule. The first of them is the one to begin with when the rule is broken. Empty in the table: those
	// that the claims are limited to.
	Scenarios []string `json:"scenarios,omitempty"`
	// Form limits the check to runs in one wire form: a value of scenario.Contracts. Empty: each form.
	Form string `json:"form,omitempty"`
	// House marks a rule that no source demands: a decision of this project. A subject of somebody else that breaks it does not fail, unless the
	// run is strict.
	House bool `json:"house,omitempty"`
	// EndToEnd marks a rule about what users see, which depends on the other rules. Where one of those is broken in the same scenario, the check is
	// blocked: one cause gives one finding.
	EndToEnd bool `json:"endToEnd,omitempty"`
	// RestsOn is the check without which this one says nothing: where that is broken although nothing is done to the subject, this one is blocked.
	RestsOn string `json:"restsOn,omitempty"`
	// Claims are what shows that the rule is broken, or was judged.
	Claims []Claim `json:"claims"`
}

// Load reads the table of a suite.
func Load(name string) (Suite, error) {
	s := Suite{Name: name}
	data, err := tables.ReadFile(name + ".yaml")
	if err == nil {
		err = yaml.UnmarshalStrict(data, &s)
	}
	if err != nil {
		return s, fmt.Errorf("suite %s: %w", name, err)
	}
	for i := range s.Checks {
		s.Checks[i].complete()
	}
	if name != Operator {
		s.Invariants = []check.Invariant{endsInTime(name)}
	}
	return s, nil
}

// complete fills the scenarios in from the claims.
func (c *Check) complete() {
	if len(c.Scenarios) > 0 {
		return
	}
	for _, claim := range c.Claims {
		c.Scenarios = appendNew(c.Scenarios, claim.In...)
	}
}

// appendNew appends the names that are not in the list yet.
func appendNew(list []string, names ...string) []string {
	for _, name := range names {
		if !slices.Contains(list, name) {
			list = append(list, name)
		}
	}
	return list
}

// Suites are all suites.
func Suites() (all []Suite, err error) {
	for _, name := range []string{Reporter, Aggregator, Operator} {
		s, err := Load(name)
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

// Rules are the checks of the suite without what shows them.
func (s Suite) Rules() (rules []conformance.Check) {
	for _, c := range s.Checks {
		rules = append(rules, c.Check)
	}
	return rules
}

// Only returns the suite with the checks that keep returns true for.
func (s Suite) Only(keep func(Check) bool) Suite {
	s.Checks = slices.DeleteFunc(slices.Clone(s.Checks), func(c Check) bool { return !keep(c) })
	return s
}

// Scenarios are the names of the scenarios that the checks need, in the order of the checks.
func (s Suite) Scenarios() (names []string) {
	for _, c := range s.Checks {
		names = appendNew(names, c.Scenarios...)
	}
	return names
}

// IDs are the ids of the checks, in their order.
func (s Suite) IDs() (ids []string) {
	for _, c := range s.Checks {
		ids = append(ids, c.ID)
	}
	return ids
}
