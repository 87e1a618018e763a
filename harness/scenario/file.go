package scenario

import (
	"bytes"
	"fmt"

	"go.yaml.in/yaml/v3"

	"github.com/kmsharness/kmsharness/harness/history"
)

// file is a scenario as it stands in a file. What has its default is left out.
type file struct {
	APIVersion string   `yaml:"apiVersion" required:"true" enum:"kmsharness.io/v1alpha1"`
	Kind       string   `yaml:"kind" required:"true" enum:"Scenario"`
	Metadata   metadata `yaml:"metadata" required:"true"`
	Spec       spec     `yaml:"spec" required:"true"`
}

type metadata struct {
	Name     string   `yaml:"name" required:"true" pattern:"^[a-z0-9]+(-[a-z0-9]+)*$" maxLength:"63" expected:"words of small letters and digits joined by dashes, at most 63 characters" description:"unique, the file's name without .yaml"`
	Title    string   `yaml:"title" required:"true" pattern:"^[^\\n]*\\S[^\\n]*$" maxLength:"200" expected:"one sentence of at most 200 characters on one line" description:"one sentence that says what must hold"`
	Area     string   `yaml:"area" required:"true" enum:"coldstart,sno,plugin,kms,reporter,aggregator,controlplane,network,node-lifecycle,encryption-type,rotation,lifecycle,observability,security,scale" description:"part of the catalogue"`
	Labels   []string `yaml:"labels,omitempty,flow" item:"label" pattern:"^[a-z0-9]+([-.:/][a-z0-9]+)*$" maxItems:"100" uniqueItems:"true" expected:"small letters and digits, such as slow" description:"further labels, such as slow"`
	OnlyKind string   `yaml:"onlyKind,omitempty" pattern:"^\\S(.*\\S)?$" maxLength:"200" expected:"one line of at most 200 characters" description:"what of a real cluster it judges that no other backend can: it gets the label only-kind, which the gate runs on kind"`
	Covers   []string `yaml:"covers,omitempty,flow" item:"statement" pattern:"^S[0-9]-[0-9]{2}$" maxItems:"100" uniqueItems:"true" expected:"a statement's id such as S0-08" description:"ids of the statements that it tests, such as S0-08"`
}

type spec struct {
	Topology        Topology        `yaml:"topology,omitempty,flow" description:"what is there when the steps begin"`
	Contract        string          `yaml:"contract,omitempty" enum:"conditions,healthreports" description:"wire form of the reports; default conditions"`
	Operator        string          `yaml:"operator,omitempty" enum:"kubeapiserver,openshiftapiserver,authentication" description:"whose custom resource is reported to; default kubeapiserver"`
	ClusterOperator ClusterOperator `yaml:"clusterOperator,omitempty,flow" description:"how the aggregator unites conditions into those of the ClusterOperator"`
	Excused         []Excuse        `yaml:"excused,omitempty,flow" description:"violations that this scenario wants"`
	Steps           []Step          `yaml:"steps" required:"true" minItems:"1" maxItems:"10000" description:"the timeline: one verb each"`
}

type stepFile struct {
	Expect *string  `yaml:"expect,omitempty" verbs:"expect" required:"true" cel:"true" pattern:"\\S" description:"becomes true within a time"`
	Holds  *string  `yaml:"holds,omitempty" verbs:"holds" required:"true" cel:"true" pattern:"\\S" description:"is true now and stays true for a time"`
	Never  *string  `yaml:"never,omitempty" verbs:"never" required:"true" cel:"true" pattern:"\\S" description:"stays false for a time"`
	Within Duration `yaml:"within,omitempty" verbs:"expect" required:"true" positive:"true" description:"for how long it is watched"`
	For    Duration `yaml:"for,omitempty" verbs:"holds,never" required:"true" positive:"true" description:"for how long it is watched"`
	Origin string   `yaml:"origin,omitempty" verbs:"expect,holds,never" enum:"source,house" description:"what it rests on: a source (default), or a decision of this project, which fails a program of somebody else only with --strict"`
	Given  string   `yaml:"given,omitempty" verbs:"expect,holds,never" cel:"true" pattern:"\\S" description:"the effect of a fault: if it never was true meanwhile, what was not met is not judged"`

	plainStep `yaml:",inline"`
}

// plainStep is a step without its methods.
type plainStep Step

// Areas are the parts of the catalogue.
func Areas() []string { return tagOf[metadata]("Area", "enum") }

// Contracts are the wire forms of reports, the default first.
func Contracts() []string { return tagOf[spec]("Contract", "enum") }

// Operators are those whose CR can be reported to, the default first.
func Operators() []string { return tagOf[spec]("Operator", "enum") }

// scenario is what the file says, without defaults.
func (f file) scenario() *Scenario {
	return &Scenario{
		Name: f.Metadata.Name, Title: f.Metadata.Title, Area: f.Metadata.Area, Labels: f.Metadata.Labels, OnlyKind: f.Metadata.OnlyKind, Covers: f.Metadata.Covers,
		Topology: f.Spec.Topology, Contract: f.Spec.Contract, Operator: f.Spec.Operator, ClusterOperator: f.Spec.ClusterOperator, Steps: f.Spec.Steps, Excused: f.Spec.Excused,
	}
}

func (s *Scenario) file() file {
	f := file{APIVersion, KindName,
		metadata{s.Name, s.Title, s.Area, s.Labels, s.OnlyKind, s.Covers},
		spec{s.Topology, s.Contract, s.Operator, s.ClusterOperator, s.Excused, s.Steps},
	}
	t := &f.Spec.Topology
	omit(&f.Spec.Operator, Operators()[0])
	omit(&t.Start, StartRunning)
	omit(&t.Lifecycle, LifecycleDirect)
	omit(&t.CRDs, history.CRDsTechPreview)
	if t.AnyConnectivity { // the file leaves that, and the form below, to the flags of a run
		t.Connectivity = ""
	}
	if s.AnyContract {
		omit(&f.Spec.Contract, ContractConditions)
	}
	if len(t.Aggregated()) == 0 {
		t.APIServers = nil
	}
	return f
}

// omit leaves out what has its default.
func omit(p *string, standard string) {
	if *p == standard {
		*p = ""
	}
}

// Encode writes s as a file that Parse reads as the same scenario. What has its default is left out.
func (s *Scenario) Encode() ([]byte, error) {
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	err := e.Encode(s.file())
	if err == nil {
		err = e.Close()
	}
	if err != nil {
		return nil, fmt.Errorf("encode scenario %s: %w", s.Name, err)
	}
	return b.Bytes(), nil
}

// keywords are what a step is: one, if it is valid.
func (s Step) keywords() (out []string) {
	if s.Action != nil {
		out = append(out, string(VerbOf(s.Action)))
	}
	if s.Expect != nil {
		out = append(out, s.Expect.Mode.Keyword())
	}
	if s.Parallel != nil { // it may be empty
		out = append(out, "parallel")
	}
	if s.Repeat != nil {
		out = append(out, "repeat")
	}
	if !s.Wait.IsZero() {
		out = append(out, "wait")
	}
	return out
}

func (s Step) file() stepFile {
	f := stepFile{plainStep: plainStep(s)}
	e := s.Expect
	if e == nil {
		return f
	}
	f.Origin, f.Given = e.Origin, e.Given
	cel, bound := f.judged(e.Mode)
	*cel, *bound = &e.CEL, e.Bound
	return f
}

// judged are the fields of a mode: the expression and for how long.
func (f *stepFile) judged(m Mode) (cel **string, bound *Duration) {
	switch m {
	case ModeHolds:
		return &f.Holds, &f.For
	case ModeNever:
		return &f.Never, &f.For
	}
	return &f.Expect, &f.Within
}

// MarshalYAML implements yaml.Marshaler: an action is on one line.
func (s Step) MarshalYAML() (any, error) {
	var n yaml.Node
	if err := n.Encode(s.file()); err != nil || s.Action == nil {
		return &n, err
	}
	var action yaml.Node
	if err := action.Encode(s.Action); err != nil {
		return nil, err
	}
	action.Style = yaml.FlowStyle
	n.Style = 0
	n.Content = append([]*yaml.Node{{Kind: yaml.ScalarNode, Value: string(VerbOf(s.Action))}, &action}, n.Content...)
	return &n, nil
}

// UnmarshalYAML implements yaml.Unmarshaler, but for the action (Verbs.decode). It takes what can be decoded, since a list would lose a step with an
// error: the checker has reported the rest.
func (s *Step) UnmarshalYAML(n *yaml.Node) error {
	var f stepFile
	_ = n.Decode(&f)
	*s = Step(f.plainStep)
	s.Pos, s.Expect = position(n), f.expectation()
	return nil
}

func (f stepFile) expectation() *Expectation {
	for _, mode := range modes() {
		if cel, bound := f.judged(mode); *cel != nil {
			return &Expectation{Mode: mode, CEL: **cel, Bound: *bound, Given: f.Given, Origin: f.Origin}
		}
	}
	return nil
}
