package scenario

import (
	"strings"

	"github.com/kmsharness/kmsharness/harness/scenario/view"
	"github.com/kmsharness/kmsharness/internal/strictyaml"
)

// FaultChecker knows the faults of the fake plugin. The catalogue of fakeplugin/fault is behind it in
// harness/scenario/standard; this package needs only to ask.
type FaultChecker interface {
	// CheckFault says what is wrong with a fault, one problem each; Param is empty if it is the fault itself.
	// Parameters that are durations are given as time.Duration. Method is empty if none was written.
	CheckFault(name, method string, params map[string]any) []FaultProblem
	// DurationParams are the parameters of a fault that are durations; nil for an unknown fault.
	DurationParams(name string) []string
	// Names are all faults.
	Names() []string
	// Profiles are the providers that a plugin can stand for.
	Profiles() []string
}

type FaultProblem struct{ Param, What string }

// Options of a parser.
type Options struct {
	// Verbs of other modules.
	Verbs Verbs
	// Faults: without (nil) their names and parameters are not checked.
	Faults FaultChecker
	// Invariants are the ids that can be excused; without (nil) they are not checked.
	Invariants []string
}

// Parser reads and validates scenarios. It is safe for concurrent use.
type Parser struct {
	Options
	cel      *view.Compiler
	keywords []string
	steps    map[string]shape // by keyword
}

// NewParser makes a parser. A verb whose name is taken is an error.
func NewParser(o Options) (*Parser, error) {
	p := &Parser{Options: o, steps: map[string]shape{}}
	var err error
	if p.cel, err = view.NewCompiler(); err != nil {
		return nil, err
	}
	if p.keywords, err = o.Verbs.keywords(); err != nil {
		return nil, err
	}
	for _, k := range p.keywords {
		p.steps[k] = o.Verbs.stepShape(k)
	}
	return p, nil
}

// Parse reads one scenario file. The error is Problems: every mistake of the file, one line each.
func (p *Parser) Parse(name string, data []byte) (*Scenario, error) {
	root, found := strictyaml.Read(data, "scenario", "apiVersion: "+APIVersion)
	if len(found) > 0 {
		var problems Problems
		for _, p := range found {
			problems = append(problems, Problem{File: name, Pos: Position{p.Line, p.Column}, What: p.What})
		}
		return nil, problems.orNil()
	}
	c := checker{file: name, parser: p}
	c.document(root)
	var f file
	if err := root.Decode(&f); err != nil && len(c.problems) == 0 { // otherwise it has been reported, and what can be decoded was
		c.add(root, nil, "%s", clip(err.Error()))
	}
	p.Verbs.decode(f.Spec.Steps, childOf(childOf(root, "spec"), "steps"))
	s := f.scenario()
	s.File = name
	s = s.WithDefaults()
	v := validation{parser: p, scenario: s, root: root}
	v.run(f)
	if err := (append(c.problems, v.positioned(strings.Split(string(data), "\n"), root, c.places)...)).orNil(); err != nil {
		return nil, err
	}
	return s, nil
}

// Validate checks a scenario that was written in Go by the same rules. Its defaults must be in place (WithDefaults).
func (p *Parser) Validate(s *Scenario) error {
	v := validation{parser: p, scenario: s}
	v.run(s.file())
	var problems Problems
	for _, f := range v.findings {
		problems = append(problems, Problem{File: s.Name, Where: f.at.String(), What: f.what})
	}
	return problems.orNil()
}
