package scenario

import (
	"fmt"
	"slices"
	"strings"
)

// BothContracts asks InForms for both wire forms.
const BothContracts = "both"

// InForms gives the scenarios in a wire form: one of Contracts, or BothContracts. A scenario that is about one form stays as it is. With both, the name
// of a scenario in the form that is not the default ends in "@healthreports".
func InForms(all []*Scenario, form string) ([]*Scenario, error) {
	if form != BothContracts && !slices.Contains(Contracts(), form) {
		return nil, fmt.Errorf("%q: expected %s or %s", form, strings.Join(Contracts(), ", "), BothContracts)
	}
	var out []*Scenario
	for _, s := range all {
		if form != ContractHealthReports || !s.AnyContract {
			out = append(out, s)
		}
		if form != ContractConditions && s.AnyContract {
			typed := *s
			typed.Contract = ContractHealthReports
			if form == BothContracts {
				typed.Name += "@" + ContractHealthReports
			}
			out = append(out, &typed)
		}
	}
	return out, nil
}

// FormMatters reports whether the wire form can make a difference to what a scenario is about: what plugins answer, what is refused, who owns an
// entry, and what the aggregator reads. A scenario that is about one form does not count.
func (s *Scenario) FormMatters() bool {
	return s.AnyContract && slices.Contains([]string{"plugin", "security", "reporter", "aggregator"}, s.Area)
}

// FormFlags are the command-line flags that ask for the form of a scenario again.
func (s *Scenario) FormFlags() []string {
	if !s.AnyContract || s.Contract == ContractConditions {
		return nil
	}
	return []string{"--contract", s.Contract}
}

// namedContract is what the scenario's file says; empty where it leaves that to who runs it.
func (s *Scenario) namedContract() string {
	if s.AnyContract && s.Contract == ContractConditions {
		return ""
	}
	return s.Contract
}
