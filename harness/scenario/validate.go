package scenario

import (
	"fmt"
	"reflect"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/history"
)

// validation applies the rules that are the same for files and for scenarios written in Go.
type validation struct {
	parser   *Parser
	scenario *Scenario
	root     *yaml.Node // of the file; nil for a scenario written in Go
	actions  []Action
	findings []finding
	nodes    []string // that are there at some time
	keyIDs   []string
	count    int // of steps, with repetitions
}

// finding is a broken rule. Line (1-based) and column (0-based) are within the text that stands at the place, where it
// is an expression; otherwise line is 0.
type finding struct {
	at           place
	line, column int
	what         string
}

// Validation is that of one action (Validator).
type Validation struct {
	*validation
	at place
}

// Scenario is what the action is in, with its defaults.
func (v Validation) Scenario() *Scenario { return v.scenario }

// Add reports a mistake at an argument of the action, by its name in the file format; an empty name stands for the action itself.
func (v Validation) Add(argument, format string, args ...any) {
	v.add(v.argument(argument), format, args...)
}

// Keyword reports an argument that is none of those that are known. what is its name in the message.
func (v Validation) Keyword(argument, what, got string, known []string) {
	v.keyword(v.argument(argument), what, got, known)
}

func (v Validation) argument(name string) place {
	if name == "" {
		return v.at
	}
	return v.at.at(name)
}

func (v *validation) add(at place, format string, args ...any) {
	v.findings = append(v.findings, finding{at: at, what: fmt.Sprintf(format, args...)})
}

// run applies the rules. f is the scenario as it stands in a file, before its defaults are in place.
func (v *validation) run(f file) {
	v.actions = v.scenario.Actions()
	v.nodes, v.keyIDs = v.scenario.allNodes(), v.scenario.allKeyIDs()
	v.mapping(reflect.ValueOf(f), shapeOf(reflect.TypeFor[file](), "the scenario"), nil)
	v.topology()
	v.excused()
	steps := place{"spec", "steps"}
	if len(v.scenario.Steps) == 0 {
		v.add(steps, "no steps, expected at least one")
	}
	v.sequence(v.scenario.Steps, steps, group{repetitions: 1})
}

// positioned are the findings as problems of a file, without those about what the shape checker reported already.
func (v *validation) positioned(source []string, root *yaml.Node, reported []place) Problems {
	var problems Problems
	for _, f := range v.findings {
		about := func(p place) bool { return f.at.within(p) || p.within(f.at) }
		if slices.ContainsFunc(reported, about) {
			continue
		}
		n, exact := f.at.node(root)
		pos := position(n)
		if exact && f.line > 0 {
			pos = locate(source, n, f.line, f.column)
		}
		problems = append(problems, Problem{File: v.scenario.File, Pos: pos, What: f.what})
	}
	return problems
}

// topology applies the rules that involve more than one field of the topology, or one beside it.
func (v *validation) topology() {
	s, at := v.scenario, place{"spec", "topology"}
	t := s.Topology
	if v.parser.Faults != nil && t.Profile != "" {
		v.keyword(at.at("profile"), "profile", t.Profile, v.parser.Faults.Profiles())
	}
	if !slices.Contains(t.APIServers, history.KubeAPIServer) {
		v.add(at.at("apiServers"), "no %s among the API servers, expected it: the others depend on it", history.KubeAPIServer)
	}
	if len(t.Aggregated()) > 0 && s.Operator != Operators()[0] {
		v.add(place{"spec", "operator"}, "operator %s with several API servers, expected none: each reports to the operator of its own", quote(s.Operator))
	}
	if (t.CRDs == history.CRDsGateOff || t.CRDs == history.CRDsVaultConfig) && !t.ByOperator() {
		v.add(at.at("crds"), "crds %s without an operator, expected lifecycle: operator: the harness itself chooses KMS", t.CRDs)
	}
	if (t.CRDs == history.CRDsDefault || t.CRDs == history.CRDsGateOff) && s.AnyContract {
		v.add(at.at("crds"), "crds %s without contract, expected %s: the typed list is not in these CRDs", t.CRDs, oneOf(Contracts()))
	}
	if t.ReporterToken == TokenSecret && t.Connectivity != history.ConnectService {
		v.add(at.at("reporterToken"), "reporterToken %s with connectivity %s, expected connectivity %s", t.ReporterToken, t.Connectivity, history.ConnectService)
	}
	list := place{"spec", "clusterOperator", "degradedInertia"}
	reported := slices.ContainsFunc(v.findings, func(f finding) bool { return f.at.within(list) })
	if _, err := contract.ParseInertia(s.ClusterOperator.DegradedInertia); err != nil && !reported {
		v.add(list, "degradedInertia: %v", err)
	}
	if !t.ByOperator() {
		return
	}
	// What an operator does not do yet is refused here, for all backends alike.
	if s.Operator != Operators()[0] {
		v.add(place{"spec", "operator"}, "operator is %s with lifecycle operator, expected %s: no other API server has one yet", quote(s.Operator), Operators()[0])
	}
	if t.Start == StartStopped {
		v.add(at.at("start"), "start is stopped with lifecycle operator, expected running: it begins with clear text, so there is nothing to start cold")
	}
}

func (v *validation) excused() {
	for i, e := range v.scenario.Excused {
		at := place{"spec", "excused"}.index(i).at("invariant")
		if v.parser.Invariants != nil {
			v.keyword(at, "invariant", e.Invariant, v.parser.Invariants)
		}
		if slices.IndexFunc(v.scenario.Excused, func(o Excuse) bool { return o.Invariant == e.Invariant }) < i {
			v.add(at, "invariant %s occurs twice, expected it once", quote(e.Invariant))
		}
	}
}
