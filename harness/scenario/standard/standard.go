// Package standard is the scenario parser of the programs: with the fault catalogue of the fake plugin and the
// invariants of the checker. It is separate from harness/scenario so that the model depends on neither.
package standard

import (
	"maps"
	"slices"
	"strings"

	"github.com/kmsharness/kmsharness/fakeplugin/fault"
	"github.com/kmsharness/kmsharness/fakeplugin/profile"
	"github.com/kmsharness/kmsharness/harness/check"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

// Parser knows every fault and every invariant of this repository.
func Parser() (*scenario.Parser, error) {
	ids := []string{}
	for _, i := range check.Invariants() {
		ids = append(ids, i.ID)
	}
	return scenario.NewParser(Faults{}, ids)
}

// Faults answers for the fault catalogue.
type Faults struct{}

// Profiles are the providers of fakeplugin/profile.
func (Faults) Profiles() []string { return profile.Names() }

// DurationParams are the parameters of a fault that are durations.
func (Faults) DurationParams(name string) []string {
	d, err := fault.Lookup(name)
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
func (Faults) CheckFault(name, method string, params map[string]any) []scenario.FaultProblem {
	params = maps.Clone(params)
	if method != "" {
		if params == nil {
			params = map[string]any{}
		}
		params["method"] = method
	}
	var problems []scenario.FaultProblem
	for {
		_, err := fault.Parse(name, params)
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

// Fault is the typed fault that an action injects.
func Fault(i *scenario.Inject) (fault.Fault, error) { return fault.Parse(i.Fault, i.FaultParams()) }
