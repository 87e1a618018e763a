package view

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/ext"
)

const (
	// MaxExpressionChars bounds one expression.
	MaxExpressionChars = 4096
	// maxDepth bounds its nesting: far more than a person writes, far less than a stack holds.
	maxDepth = 64
	// maxCost bounds one evaluation. The healthy control over 200 reports costs a tenth of it.
	maxCost = 1_000_000
)

// Compiler compiles expressions over the state view, each text once. It is safe for concurrent use.
type Compiler struct {
	env  *cel.Env
	mu   sync.Mutex
	done map[string]*Program
}

// Issue is something wrong with an expression. Line is 1-based, Column 0-based in code points, both within the
// expression.
type Issue struct {
	Line, Column int
	Message      string
}

// NewCompiler builds the typed environment.
func NewCompiler() (*Compiler, error) {
	env, err := cel.NewEnv(ext.NativeTypes(ext.ParseStructTags(true), reflect.TypeFor[variables]()),
		cel.ExpressionNestingDepthLimit(maxDepth), cel.ParserRecursionLimit(maxDepth*2), cel.ParserExpressionSizeLimit(MaxExpressionChars))
	if err != nil {
		return nil, fmt.Errorf("build the language of expectations: %w", err)
	}
	var declared []cel.EnvOption
	for _, name := range Variables() {
		f, found := env.CELTypeProvider().FindStructFieldType(object[variables]().TypeName(), name)
		if !found {
			return nil, fmt.Errorf("build the language of expectations: variable %s has no type", name)
		}
		declared = append(declared, cel.Variable(name, f.Type))
	}
	if env, err = env.Extend(declared...); err != nil {
		return nil, fmt.Errorf("build the language of expectations: %w", err)
	}
	return &Compiler{env: env, done: map[string]*Program{}}, nil
}

// Variables lists the variables, for messages and completion.
func Variables() (names []string) {
	for _, f := range reflect.VisibleFields(reflect.TypeFor[variables]()) {
		if name := f.Tag.Get("cel"); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// Fields lists the fields of all variables, for messages.
func Fields() []string {
	fields := map[string]bool{}
	collect(reflect.TypeFor[variables](), fields)
	return slices.Sorted(maps.Keys(fields))
}

func collect(t reflect.Type, fields map[string]bool) {
	switch t.Kind() {
	case reflect.Map, reflect.Slice:
		collect(t.Elem(), fields)
	case reflect.Struct:
		for _, f := range reflect.VisibleFields(t) {
			if name := f.Tag.Get("cel"); name != "" {
				fields[name] = true
				collect(f.Type, fields)
			}
		}
	}
}

// object is the CEL type of a Go struct: its package's and its own name, as ext.NativeTypes registers it.
func object[T any]() *cel.Type {
	return types.NewObjectType("view." + reflect.TypeFor[T]().Name())
}

// Compile parses and type-checks an expression, which must be a bool. Either the program or issues are returned.
func (c *Compiler) Compile(text string) (*Program, []Issue) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p := c.done[text]; p != nil {
		return p, nil
	}
	p, issues := c.compile(text)
	if p != nil {
		c.done[text] = p
	}
	return p, issues
}

func (c *Compiler) compile(text string) (*Program, []Issue) {
	if strings.TrimSpace(text) == "" {
		return nil, []Issue{{1, 0, "it is empty, expected a CEL expression that is true or false"}}
	}
	checked, issues := c.env.Compile(text)
	if issues.Err() != nil {
		return nil, reword(issues)
	}
	if checked.OutputType() != cel.BoolType {
		return nil, []Issue{{1, 0, fmt.Sprintf("the result is a %s, expected true or false", checked.OutputType())}}
	}
	program, err := c.env.Program(checked, cel.CostLimit(maxCost), cel.EvalOptions(cel.OptOptimize))
	if err != nil {
		return nil, []Issue{{1, 0, firstLine(err.Error())}}
	}
	return &Program{text: text, ast: checked, eval: program, env: c.env, time: usesTime(checked)}, nil
}

func reword(issues *cel.Issues) []Issue {
	var out []Issue
	for _, e := range issues.Errors() {
		out = append(out, Issue{max(1, e.Location.Line()), max(0, e.Location.Column()), plain(e.Message)})
	}
	return out
}

// plain drops what CEL says for its own developers.
func plain(message string) string {
	message = strings.ReplaceAll(message, " (in container '')", "")
	message = strings.ReplaceAll(message, "view.", "")
	return firstLine(message)
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return line
}
