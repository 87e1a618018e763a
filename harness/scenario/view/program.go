package view

import (
	"slices"
	"time"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
)

// Program is a compiled expression. It is safe for concurrent use.
type Program struct {
	text string
	ast  *cel.Ast
	eval cel.Program
	env  *cel.Env
	time bool // UsesTime
}

func (p *Program) Text() string { return p.text }

// Eval judges the expression at an instant. A lookup of something that is not there makes it false, as does any
// other error of evaluation; Explain says which.
func (p *Program) Eval(s *State, now time.Time) bool {
	out, _, err := p.eval.Eval(&activation{state: s, now: now})
	if err != nil {
		return false
	}
	yes, ok := out.Value().(bool)
	return ok && yes
}

// UsesTime says whether the passing of time alone can change the expression's value.
func (p *Program) UsesTime() bool { return p.time }

func usesTime(checked *cel.Ast) bool {
	found := false
	ast.PreOrderVisit(checked.NativeRep().Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		found = found || e.Kind() == ast.SelectKind && slices.Contains([]string{"age", "fresh"}, e.AsSelect().FieldName())
	}))
	return found
}

// activation computes a variable when an expression asks for it.
type activation struct {
	state  *State
	now    time.Time
	report map[string]map[string]Entry // once computed: an expression asks for it once for each plugin
}

// Parent is none: there is one scope.
func (*activation) Parent() cel.Activation { return nil }

// ResolveName gives a variable's value at the activation's instant.
func (a *activation) ResolveName(name string) (any, bool) {
	s := a.state
	switch name {
	case varRollup:
		return s.rollup(), true
	case varClusterOperator:
		return s.operators(), true
	case varReport:
		if a.report == nil {
			a.report = s.report(a.now)
		}
		return a.report, true
	case varReports:
		return s.items(), true
	case varExpected:
		return s.nodes(), true
	case varPlugins:
		return s.plugins(), true
	case varKMSActive:
		return s.kmsActive, true
	case varConditions:
		s.read()
		return s.conditions, true
	case varProcess:
		return s.process(), true
	case varWrites:
		return s.writes, true
	case varMetrics:
		return s.metrics, true
	case varData:
		return s.data, true
	case varEncryption:
		return s.encryption, true
	case varOperator:
		return s.decided, true
	case varOperations:
		return s.operations, true
	case varHealth:
		return s.health, true
	case varAPIServer:
		return s.apiServers(a.now), true
	case varAny:
		return s.any, true
	}
	return nil, false
}
