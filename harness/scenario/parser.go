package scenario

import (
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/kmsharness/kmsharness/harness/scenario/view"
)

// FaultChecker knows the faults of the fake plugin. The catalogue of fakeplugin/fault is behind it in
// harness/scenario/standard; this package needs only to ask.
type FaultChecker interface {
	// CheckFault says what is wrong with a fault, one problem each; Param is empty if it is the fault itself.
	// Parameters that are durations are given as time.Duration. Method is empty if none was written.
	CheckFault(name, method string, params map[string]any) []FaultProblem
	// DurationParams are the parameters of a fault that are durations; nil for an unknown fault.
	DurationParams(name string) []string
	// Profiles are the providers that a plugin can stand for.
	Profiles() []string
}

type FaultProblem struct{ Param, What string }

// Parser reads and validates scenarios. It is safe for concurrent use.
type Parser struct {
	faults     FaultChecker
	invariants []string
	cel        *view.Compiler
}

// NewParser makes a parser that knows these faults and invariants. Without faults (nil) their names and parameters are
// not checked; without invariants those of the contract are known.
func NewParser(faults FaultChecker, invariants []string) (*Parser, error) {
	compiler, err := view.NewCompiler()
	if err != nil {
		return nil, err
	}
	if invariants == nil {
		invariants = Invariants()
	}
	return &Parser{faults, invariants, compiler}, nil
}

// Parse reads one scenario file. The error is Problems: every mistake of the file, one line each.
func (p *Parser) Parse(file string, data []byte) (*Scenario, error) {
	root, problems := document(file, data)
	if len(problems) > 0 {
		return nil, problems.orNil()
	}
	c := checker{file: file}
	c.check(root, mapping("the scenario", new(Scenario).fields()...), nil)
	c.header(root)
	s := decode(root, file)
	v := validation{parser: p, scenario: s, root: root}
	v.run()
	if err := (append(c.problems, v.positioned(strings.Split(string(data), "\n"), root, c.places)...)).orNil(); err != nil {
		return nil, err
	}
	return s, nil
}

// header checks the words that say that this is a scenario of this version, and its name against the file's.
func (c *checker) header(root *yaml.Node) {
	for _, want := range [][2]string{{"apiVersion", APIVersion}, {"kind", KindName}} {
		if n := childOf(root, want[0]); n != nil && scalarText(n) != "" && n.Value != want[1] {
			c.add(n, place{want[0]}, "%s is %s, expected %q", want[0], quote(n.Value), want[1])
		}
	}
	name := childOf2(childOf(root, "metadata"), "name")
	base := strings.TrimSuffix(strings.TrimSuffix(filepath.Base(c.file), ".yaml"), ".yml")
	if scalarText(name) != "" && name.ShortTag() == "!!str" && name.Value != base {
		c.add(name, place{"metadata", "name"}, "name is %s, expected the file's name %q", quote(name.Value), base)
	}
}

// Validate checks a scenario that was written in Go by the same rules. Its defaults must be in place (WithDefaults).
func (p *Parser) Validate(s *Scenario) error {
	v := validation{parser: p, scenario: s}
	v.run()
	var problems Problems
	for _, f := range v.findings {
		problems = append(problems, Problem{File: s.Name, Where: f.at.String(), What: f.what})
	}
	return problems.orNil()
}
