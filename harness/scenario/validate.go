package scenario

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/internal/suggest"
)

const (
	maxNameChars  = 63 // a label value and a file name everywhere
	maxTitleChars = 200
	maxTexts      = 100 // labels, covered statements, excuses
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
	steps    int // with repetitions
}

// finding is a broken rule. Line (1-based) and column (0-based) are within the text that stands at the place, where it
// is an expression; otherwise line is 0.
type finding struct {
	at           place
	line, column int
	what         string
}

func (v *validation) add(at place, format string, args ...any) {
	v.findings = append(v.findings, finding{at: at, what: fmt.Sprintf(format, args...)})
}

func (v *validation) run() {
	v.actions = v.scenario.Actions()
	v.nodes, v.keyIDs = v.scenario.allNodes(), v.scenario.allKeyIDs()
	v.metadata()
	v.topology()
	v.clusterOperator()
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

// The words of a scenario's metadata.
var (
	nameForm       = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
	labelForm      = regexp.MustCompile(`^[a-z0-9]+([-.:/][a-z0-9]+)*$`)
	coversForm     = regexp.MustCompile(`^S[0-9]-[0-9]{2}$`)
	keyIDForm      = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9-]{0,62}$`)
	inertiaForm    = regexp.MustCompile(`^([A-Za-z0-9_.-]*Degraded=)?([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`)
	nodeForm       = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)
	kubeForm       = regexp.MustCompile(`^[A-Za-z]([A-Za-z0-9_,:.-]{0,252}[A-Za-z0-9_])?$`)
	excuseKeywords = 3
)

func (v *validation) metadata() {
	s, at := v.scenario, place{"metadata"}
	if !nameForm.MatchString(s.Name) || len(s.Name) > maxNameChars {
		v.add(at.at("name"), "name is %s, expected words of small letters and digits joined by dashes, at most %d characters", quote(s.Name), maxNameChars)
	}
	if n := utf8.RuneCountInString(s.Title); strings.TrimSpace(s.Title) == "" || n > maxTitleChars || strings.Contains(s.Title, "\n") {
		v.add(at.at("title"), "title has %d characters, expected one sentence of at most %d on one line", n, maxTitleChars)
	}
	v.keyword(at.at("area"), "area", s.Area, Areas())
	v.texts(at.at("labels"), "label", s.Labels, labelForm, "small letters and digits, such as slow")
	if s.OnlyKind != "" && !oneLine.MatchString(s.OnlyKind) || utf8.RuneCountInString(s.OnlyKind) > maxTitleChars {
		v.add(at.at("onlyKind"), "onlyKind is %s, expected one line of at most %d characters", quote(s.OnlyKind), maxTitleChars)
	}
	v.texts(at.at("covers"), "statement", s.Covers, coversForm, "a statement's id such as S0-08")
}

// texts checks a list of words: their form, and that none occurs twice.
func (v *validation) texts(at place, what string, values []string, form *regexp.Regexp, expected string) {
	if len(values) > maxTexts {
		v.add(at, "%d entries, expected at most %d", len(values), maxTexts)
		return
	}
	for i, value := range values {
		switch {
		case !form.MatchString(value):
			v.add(at.index(i), "%s %s is malformed, expected %s", what, quote(value), expected)
		case slices.Index(values, value) < i:
			v.add(at.index(i), "%s %s occurs twice, expected it once", what, quote(value))
		}
	}
}

// keyword checks a value of a closed list.
func (v *validation) keyword(at place, what, got string, known []string) bool {
	if slices.Contains(known, got) {
		return true
	}
	v.add(at, "%s is %s, expected %s%s", what, quote(got), oneOf(known), suggest.DidYouMean(got, known))
	return false
}

// number checks a bound.
func (v *validation) number(at place, what string, got, least, most int) {
	if got < least || got > most {
		v.add(at, "%s is %d, expected %d to %d", what, got, least, most)
	}
}

// duration checks that a duration can be resolved. The default timing stands for all: only its letters matter.
func (v *validation) duration(at place, d Duration, needed bool) {
	resolved, err := d.Resolve(contract.DefaultTiming())
	switch {
	case err != nil:
		v.add(at, "%v", err)
	case d.IsZero() && needed:
		v.add(at, "no duration, expected one such as 2I, 500ms or detection")
	case resolved == 0 && needed:
		v.add(at, "duration %s is zero, expected more", quote(d.Text))
	}
}

// Lifecycles are the values of topology.lifecycle, the default first.
func Lifecycles() []string { return []string{LifecycleDirect, LifecycleOperator} }

// operated checks a topology with an operator: what it does not do yet is refused here, for all backends alike.
func (v *validation) operated(t Topology, at place) {
	if !t.ByOperator() {
		return
	}
	if v.scenario.Operator != Operators()[0] {
		v.add(place{"spec", "operator"}, "operator is %s with lifecycle operator, expected %s: no other API server has one yet", quote(v.scenario.Operator), Operators()[0])
	}
	if t.Start == StartStopped {
		v.add(at.at("start"), "start is stopped with lifecycle operator, expected running: it begins with clear text, so there is nothing to start cold")
	}
}
