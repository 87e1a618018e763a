package view

import (
	"fmt"
	"sort"
	"strings"
	"time"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/history"
)

const (
	maxValues      = 12  // sub-values in one explanation
	maxValueChars  = 160 // of one value
	maxExplanation = 4096
)

// Explain says in words what the parts of an expression are at an instant, and what rollup and reports say: what a
// reader needs to see why it was not met. Texts of plugins are made safe to print.
func (p *Program) Explain(s *State, now time.Time) string {
	parts := p.Values(s, now)
	parts = append(parts, s.Summary(now))
	for _, name := range s.APIServers() {
		parts = append(parts, name+": "+s.Of(name).Summary(now))
	}
	return contract.SafeText(strings.Join(parts, "; "), maxExplanation)
}

// Values are the sub-expressions that look something up, with what they are at an instant.
func (p *Program) Values(s *State, now time.Time) []string {
	program, err := p.env.Program(p.ast, cel.CostLimit(maxCost), cel.EvalOptions(cel.OptTrackState, cel.OptExhaustiveEval))
	if err != nil {
		return []string{err.Error()}
	}
	_, details, err := program.Eval(&activation{state: s, now: now})
	var out []string
	for _, e := range p.lookups() {
		text, known := cel.ExprToString(e, p.ast.NativeRep().SourceInfo())
		if known != nil || details == nil || len(out) == maxValues {
			continue
		}
		if v, ok := details.State().Value(e.ID()); ok {
			out = append(out, text+" = "+show(v))
		}
	}
	if err != nil {
		out = append(out, plain(err.Error()))
	}
	return dedupe(out)
}

// lookups are the outermost selections and indexings outside of macros, whose variables have no single value.
func (p *Program) lookups() []ast.Expr {
	var out []ast.Expr
	var walk func(ast.Expr)
	walk = func(e ast.Expr) {
		switch {
		case e.Kind() == ast.SelectKind, isIndex(e):
			out = append(out, e)
		case e.Kind() == ast.CallKind:
			call := e.AsCall()
			if call.IsMemberFunction() {
				walk(call.Target())
			}
			for _, arg := range call.Args() {
				walk(arg)
			}
		}
	}
	walk(p.ast.NativeRep().Expr())
	return out
}

func isIndex(e ast.Expr) bool {
	return e.Kind() == ast.CallKind && e.AsCall().FunctionName() == "_[_]"
}

func show(v ref.Val) string {
	switch v := v.(type) {
	case *types.Err:
		return firstLine(v.Error())
	case types.String:
		return fmt.Sprintf("%q", contract.SafeText(string(v), maxValueChars))
	case types.Duration:
		return v.Duration.Round(time.Millisecond).String()
	}
	return contract.SafeText(fmt.Sprint(v.Value()), maxValueChars)
}

// Summary is rollup, reports and processes that are not running, in one line.
func (s *State) Summary(now time.Time) string {
	r := s.rollup()
	parts := []string{"rollup: Degraded " + r.Degraded.short(), "Available " + r.Available.short(), "Progressing " + r.Progressing.short()}
	line := strings.Join(parts, ", ")
	if r.Degraded.Message != "" {
		line += fmt.Sprintf(" (%s)", contract.SafeText(r.Degraded.Message, maxValueChars))
	}
	return line + "; reports: " + s.shortReports(now) + s.processes.short()
}

func (c Condition) short() string {
	if !c.Exists {
		return "absent"
	}
	return c.Status + "/" + c.Reason
}

func (s *objects) shortReports(now time.Time) string {
	s.read()
	if len(s.reports) == 0 {
		return "none"
	}
	var out []string
	for _, r := range s.reports {
		text := fmt.Sprintf("%s/%s %s %v old", r.node, r.entry.KeyID, r.entry.Status, now.Sub(r.entry.LastChecked).Round(time.Millisecond))
		if r.entry.Detail != "" {
			text += fmt.Sprintf(" (%s)", contract.SafeText(r.entry.Detail, maxValueChars))
		}
		out = append(out, text)
	}
	return strings.Join(out, ", ")
}

func (s *processes) short() string {
	var out []string
	for role, names := range s.byRole() {
		for name, state := range names {
			// A pre-flight program ends with its check, and so does its plugin.
			checks := role == history.RolePreflight || strings.HasPrefix(name+"/", history.RolePreflight+"/")
			if state != Running && !checks {
				out = append(out, fmt.Sprintf("%s %s %s", role, name, state))
			}
		}
	}
	if len(out) == 0 {
		return ""
	}
	sort.Strings(out)
	return "; not running: " + strings.Join(out, ", ")
}

func dedupe(in []string) []string {
	seen, out := map[string]bool{}, in[:0]
	for _, s := range in {
		if !seen[s] {
			seen[s] = true
			out = append(out, s)
		}
	}
	return out
}
