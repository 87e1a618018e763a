package view

import (
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
)

// Reference is a constant of an expression that names a part of the control plane or a value of the view. A misspelt
// one would not fail: it would make the expression false for ever, and a "never" true for ever.
type Reference struct {
	Kind         ReferenceKind
	Value        string
	Line, Column int // as in Issue
}

// ReferenceKind says what a constant names.
type ReferenceKind string

// Kinds of references.
const (
	RefNode            ReferenceKind = "node"
	RefKeyID           ReferenceKind = "keyID"
	RefConditionStatus ReferenceKind = "condition status"
	RefReportStatus    ReferenceKind = "report status"
	RefRole            ReferenceKind = "role"
	RefAPIServer       ReferenceKind = "further API server"
)

// References are the constants that can be checked against the scenario.
func (p *Program) References() []Reference {
	f := finder{ast: p.ast.NativeRep()}
	ast.PreOrderVisit(f.ast.Expr(), ast.NewExprVisitor(f.visit))
	return f.found
}

type finder struct {
	ast   *ast.AST
	found []Reference
}

func (f *finder) visit(e ast.Expr) {
	if e.Kind() != ast.CallKind || len(e.AsCall().Args()) != 2 {
		return
	}
	a, b := e.AsCall().Args()[0], e.AsCall().Args()[1]
	switch e.AsCall().FunctionName() {
	case operators.Index:
		f.add(keyKind(a), b)
	case operators.In:
		f.add(keyKind(b), a)
	case operators.Equals, operators.NotEquals:
		f.add(f.valueKind(a), b)
		f.add(f.valueKind(b), a)
	}
}

func (f *finder) add(kind ReferenceKind, e ast.Expr) {
	if kind == "" || e.Kind() != ast.LiteralKind {
		return
	}
	text, ok := e.AsLiteral().(types.String)
	if !ok {
		return
	}
	at := f.ast.SourceInfo().GetStartLocation(e.ID())
	f.found = append(f.found, Reference{kind, string(text), at.Line(), at.Column()})
}

// keyKind says what the keys of a map are, by the variable that it is.
func keyKind(m ast.Expr) ReferenceKind {
	switch {
	case isVariable(m, "report"), isVariable(m, "writes"), isVariable(m, "metrics"), isVariable(m, "socket"), isVariable(m, "expected"), isVariable(m, "encryption"):
		return RefNode
	case m.Kind() == ast.SelectKind && m.AsSelect().FieldName() == "replicas":
		return RefNode
	case isVariable(m, "process"):
		return RefRole
	case m.Kind() == ast.IdentKind && m.AsIdent() == "apiServer":
		return RefAPIServer
	case isIndex(m) && (isVariable(m.AsCall().Args()[0], "report") || isVariable(m.AsCall().Args()[0], "metrics") || isVariable(m.AsCall().Args()[0], "socket")):
		return RefKeyID
	}
	return ""
}

// isVariable says whether an expression is a variable, or the field of that name of a further API server.
func isVariable(e ast.Expr, name string) bool {
	if e.Kind() == ast.SelectKind && e.AsSelect().FieldName() == name {
		of := e.AsSelect().Operand()
		return isIndex(of) && isVariable(of.AsCall().Args()[0], "apiServer")
	}
	return e.Kind() == ast.IdentKind && e.AsIdent() == name
}

// valueKind says what values a selected field can have, by the type that it is selected from.
func (f *finder) valueKind(e ast.Expr) ReferenceKind {
	if e.Kind() != ast.SelectKind {
		return ""
	}
	of, field := f.ast.GetType(e.AsSelect().Operand().ID()).TypeName(), e.AsSelect().FieldName()
	entry := of == object[Entry]().TypeName() || of == object[Item]().TypeName()
	switch {
	case field == "status" && of == object[Condition]().TypeName():
		return RefConditionStatus
	case field == "status" && entry:
		return RefReportStatus
	case field == "node" && of == object[Item]().TypeName():
		return RefNode
	case field == "keyID" && of == object[Item]().TypeName():
		return RefKeyID
	}
	return ""
}
