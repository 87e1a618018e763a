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

func (*activation) Parent() cel.Activation { return nil }

// ResolveName gives a variable's value at the activation's instant.
func (a *activation) ResolveName(name string) (any, bool) {
	value, known := values[name]
	if !known {
		return nil, false
	}
	return value(a), true
}

// values compute the variables.
var values = map[string]func(*activation) any{
	"rollup":          func(a *activation) any { return a.state.rollup() },
	"clusterOperator": func(a *activation) any { return a.state.operators() },
	"report":          (*activation).reports,
	"reports":         func(a *activation) any { return a.state.items() },
	"expected":        func(a *activation) any { return a.state.Nodes() },
	"plugins":         func(a *activation) any { return a.state.Plugins() },
	"kmsActive":       func(a *activation) any { return a.state.kmsActive },
	"conditions":      func(a *activation) any { a.state.read(); return a.state.conditions },
	"process":         func(a *activation) any { return a.state.processes.byRole() },
	"writes":          func(a *activation) any { return a.state.writes },
	"metrics":         func(a *activation) any { return a.state.metrics },
	"socket":          func(a *activation) any { return a.state.sockets },
	"data":            func(a *activation) any { return a.state.data },
	"encryption":      func(a *activation) any { return a.state.encryption },
	"operator":        func(a *activation) any { return a.state.decided },
	"operations":      func(a *activation) any { return a.state.operations.counts },
	"health":          func(a *activation) any { return a.state.health },
	"apiServer":       func(a *activation) any { return a.state.apiServers(a.now) },
	"any":             func(a *activation) any { return a.state.any },
}

func (a *activation) reports() any {
	if a.report == nil {
		a.report = a.state.report(a.now)
	}
	return a.report
}
