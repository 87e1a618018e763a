package scenario

import (
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/scenario/view"
	"github.com/kmsharness/kmsharness/internal/suggest"
)

const (
	// MaxTimes bounds one repetition, maxSteps a whole run with its repetitions multiplied out.
	MaxTimes = 1000
	maxSteps = 10_000
	maxDepth = 8 // of groups within groups
)

type group struct {
	depth       int
	repetitions int // of everything around, multiplied
	repeated    bool
}

func (v *validation) sequence(steps []Step, at place, g group) {
	if g.depth > maxDepth {
		v.add(at, "groups are nested more than %d deep, expected a flatter timeline", maxDepth)
		return
	}
	for i, s := range steps {
		if v.count += g.repetitions; v.count > maxSteps {
			v.add(at.index(i), "more than %d steps with repetitions, expected a shorter timeline", maxSteps)
			return
		}
		v.step(s, at.index(i), g)
	}
}

func (v *validation) step(s Step, at place, g group) {
	if g.repeated && !s.At.IsZero() {
		v.add(at.at("at"), "at within repeat, expected after: the instant would be over the second time")
	}
	is := s.keywords()
	if len(is) != 1 {
		v.add(at, "step has %d of action, expectation, parallel, repeat and wait, expected one", len(is))
		return
	}
	if e := s.Expect; e != nil && !slices.Contains(modes(), e.Mode) {
		v.add(at, "mode is %s, expected within, holds or never", quote(string(e.Mode)))
		return
	}
	v.mapping(reflect.ValueOf(s.file()), v.parser.steps[is[0]], at)
	g.depth++
	switch {
	case s.Action != nil:
		v.action(s.Action, at.at(is[0]))
	case s.Parallel != nil:
		v.group(s.Parallel, at.at("parallel"), g)
	case s.Repeat != nil:
		g.repetitions, g.repeated = g.repetitions*max(1, min(s.Repeat.Times, MaxTimes)), true
		v.group(s.Repeat.Steps, at.at("repeat", "steps"), g)
	}
}

func (v *validation) group(steps []Step, at place, g group) {
	if len(steps) == 0 {
		v.add(at, "an empty group, expected at least one step")
	}
	v.sequence(steps, at, g)
}

// Keyword is the word of the file format for a mode.
func (m Mode) Keyword() string {
	if m == ModeWithin {
		return "expect"
	}
	return string(m)
}

func (v *validation) expression(cel string, at place) {
	if utf8.RuneCountInString(cel) > view.MaxExpressionChars {
		v.add(at, "expression has more than %d characters, expected a shorter one", view.MaxExpressionChars)
		return
	}
	program, issues := v.parser.cel.Compile(cel)
	for _, i := range issues {
		v.findings = append(v.findings, finding{at, i.Line, i.Column, "expression: " + suggestIn(i.Message)})
	}
	if program == nil {
		return
	}
	for _, r := range program.References() {
		if what := v.reference(r); what != "" {
			v.findings = append(v.findings, finding{at, r.Line, r.Column, "expression: " + what})
		}
	}
}

// suggestIn adds a suggestion to what CEL says about a misspelt variable or field.
func suggestIn(message string) string {
	message, _, _ = strings.Cut(message, " (did you mean")
	_, rest, ok := strings.Cut(message, "undeclared reference to '")
	known := view.Variables()
	if !ok {
		_, rest, ok = strings.Cut(message, "undefined field '")
		known = view.Fields()
	}
	keyword, _, closed := strings.Cut(rest, "'")
	if !ok || !closed {
		return message
	}
	return message + suggest.DidYouMean(keyword, known)
}

// reference says what is wrong with a constant of an expression, or nothing.
func (v *validation) reference(r view.Reference) string {
	known := map[view.ReferenceKind][]string{
		view.RefNode:            append(slices.Clone(v.nodes), v.ghostNodes()...),
		view.RefKeyID:           v.keyIDs,
		view.RefConditionStatus: {"True", "False", "Unknown", ""},
		view.RefReportStatus:    {string(contract.StatusHealthy), string(contract.StatusUnhealthy), string(contract.StatusError), ""},
		view.RefRole:            roles(),
		view.RefAPIServer:       v.scenario.Topology.Aggregated(),
	}[r.Kind]
	if slices.Contains(known, r.Value) {
		return ""
	}
	known = slices.DeleteFunc(slices.Clone(known), func(s string) bool { return s == "" })
	if len(known) == 0 {
		return string(r.Kind) + " " + quote(r.Value) + " cannot be, there is none in the topology"
	}
	return string(r.Kind) + " " + quote(r.Value) + " cannot be, expected " + oneOf(known) + suggest.DidYouMean(r.Value, known)
}

// ghostNodes are nodes that only a made-up condition speaks of.
func (v *validation) ghostNodes() []string {
	var out []string
	for _, a := range v.actions {
		if c, ok := a.(*Condition); ok {
			if node, ok := contract.NodeOfCondition(c.Type); ok {
				out = append(out, node)
			}
		}
	}
	return out
}

// Text for nodes that are no name.
const (
	NodeAny = "any"
	NodeAll = "all"
)

// action applies the rules of a verb that involve more than one argument, or the topology.
func (v *validation) action(a Action, at place) {
	if v.parser.Verbs.find(VerbOf(a)) == nil {
		v.keyword(at, "verb", string(VerbOf(a)), v.parser.keywords)
		return
	}
	if c, ok := a.(Validator); ok {
		c.Validate(Validation{v, at})
	}
}
