// Package standard is the scenario parser of the programs: with the fault catalogue of the fake plugin and the
// invariants of the checker. It is separate from harness/scenario so that the model depends on neither.
package standard

import (
	"maps"
	"slices"
	"strings"

	"github.com/kmsharness/kmsharness/fakeplugin/fault"
	"github.com/kmsharness/kmsharness/harness/check"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

// Extensions are what another module adds to that. The zero value adds nothing.
type Extensions struct {
	Verbs      scenario.Verbs
	Invariants []check.Invariant
	// Faults, and the profiles of providers. The program fake-kms-plugin has to have them, too (fakeplugin/cli).
	Faults fault.Catalogue
}

// Parser knows every verb, fault and invariant of this repository.
func Parser() (*scenario.Parser, error) { return Extensions{}.Parser() }

// Parser knows those of another module, too.
func (x Extensions) Parser() (*scenario.Parser, error) {
	ids := []string{}
	for _, i := range append(check.Invariants(), x.Invariants...) {
		ids = append(ids, i.ID)
	}
	return scenario.NewParser(scenario.Options{Verbs: x.Verbs, Faults: Faults{x.Faults}, Invariants: ids})
}

// Faults answers for a fault catalogue. The zero value has what is built in.
type Faults struct{ fault.Catalogue }

func (f Faults) Profiles() []string { return f.Catalogue.Profiles.Names() }

func (f Faults) DurationParams(name string) []string {
	d, err := f.Lookup(name)
	if err != nil {
		return nil
	}
	out := []string{}
	for _, p := range append(slices.Clone(d.Params), d.Bounds()...) {
		if p.Kind == fault.KindDuration {
			out = append(out, p.Name)
		}
	}
	return out
}

// CheckFault asks the catalogue again and again, without the parameter that it complained about, so that all mistakes
// are found at once.
func (f Faults) CheckFault(name, method string, params map[string]any) []scenario.FaultProblem {
	params = maps.Clone(params)
	if method != "" {
		if params == nil {
			params = map[string]any{}
		}
		params["method"] = method
	}
	var problems []scenario.FaultProblem
	for {
		_, err := f.Parse(name, params)
		if err == nil {
			return problems
		}
		p := attribute(err.Error(), params)
		problems = append(problems, p)
		if p.Param == "" {
			return problems
		}
		delete(params, p.Param)
	}
}

// attribute finds the parameter that a message is about.
func attribute(message string, params map[string]any) scenario.FaultProblem {
	for _, param := range slices.Sorted(maps.Keys(params)) {
		if strings.Contains(message, ": "+param+": ") || strings.Contains(message, "parameter \""+param+"\"") {
			return scenario.FaultProblem{Param: param, What: message}
		}
	}
	return scenario.FaultProblem{What: message}
}
