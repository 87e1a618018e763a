package health

import (
	"slices"

	"github.com/kmsharness/kmsharness/conformance"
	"github.com/kmsharness/kmsharness/harness/check"
)

// Check is one rule, and what of a run of scenarios shows whether it is kept.
type Check struct {
	conformance.Check
	// Scenarios of the catalogue that exercise the rule. The first of them is the one to begin with when the rule is broken. Nil: those that the
	// claims are limited to.
	Scenarios []string
	// Form limits the check to runs in one wire form: a value of scenario.Contracts. Empty: each form.
	Form string
	// House marks a rule that no source demands: a decision of this project. A subject of somebody else that breaks it does not fail, unless the
	// run is strict.
	House bool
	// EndToEnd marks a rule about what users see, which depends on the other rules. Where one of those is broken in the same scenario, the check is
	// blocked: one cause gives one finding.
	EndToEnd bool
	// Claims are what shows that the rule is broken, or was judged.
	Claims []Claim
}

// Claim selects findings of verdicts. Each finding belongs to the check with the closest claim, see Suite.owner.
type Claim struct {
	// Invariant is the id of the invariant whose violations are claimed. Empty: the claim is about expectations.
	Invariant string
	// Steps are the ids of the claimed expectations and actions, such as steps[1].expect. Empty: all of the scenarios.
	Steps []string
	// Text limits the claim to expectations whose text contains it.
	Text string
	// In are the scenarios to which the claim is limited. Empty: all.
	In []string
	// Seen limits the claim to violations whose observation or allowance contains one of these texts.
	Seen []string
	// Node limits the claim to violations of one node.
	Node string
}

// scenarios are those that exercise the rule.
func (c Check) scenarios() []string {
	if c.Scenarios != nil {
		return c.Scenarios
	}
	var names []string
	for _, claim := range c.Claims {
		for _, name := range claim.In {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// Suite is a list of checks for one kind of subject.
type Suite struct {
	// Name is reporter, aggregator or operator.
	Name   string
	Checks []Check
	// Invariants judge each run in addition to those of harness/check.
	Invariants []check.Invariant
	// FirstFailureEnds ends a scenario at the first expectation that failed. Otherwise its steps go on, so that one run has all findings; where each
	// step waits for the one before, the rest would only wait for its bounds.
	FirstFailureEnds bool
}

func Suites() []Suite { return []Suite{Reporter(), Aggregator(), Operator()} }

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
		for _, name := range c.scenarios() {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
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

// invariant claims all violations of an invariant that no other check claims more closely.
func invariant(id string) Claim { return Claim{Invariant: id} }

// seen claims the violations of an invariant whose text contains one of the texts.
func seen(id string, texts ...string) Claim { return Claim{Invariant: id, Seen: texts} }

// during claims the violations of an invariant in some scenarios.
func during(id string, scenarios ...string) Claim { return Claim{Invariant: id, In: scenarios} }

// steps claims all expectations and actions of some scenarios.
func steps(scenarios ...string) Claim { return Claim{In: scenarios} }

// step claims some expectations of a scenario.
func step(scenario string, ids ...string) Claim { return Claim{In: []string{scenario}, Steps: ids} }
