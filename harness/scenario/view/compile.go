package view

import (
	"fmt"
	"reflect"
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
	entry, condition := object[Entry](), object[Condition]()
	env, err := cel.NewEnv(
		ext.NativeTypes(ext.ParseStructTags(true),
			reflect.TypeFor[Rollup](), reflect.TypeFor[Condition](), reflect.TypeFor[Entry](), reflect.TypeFor[Item](),
			reflect.TypeFor[Plugin](), reflect.TypeFor[Writes](), reflect.TypeFor[Metrics](), reflect.TypeFor[Data](), reflect.TypeFor[Operations](), reflect.TypeFor[Operator](), reflect.TypeFor[Health](), reflect.TypeFor[APIServer]()),
		cel.Variable(varRollup, object[Rollup]()),
		cel.Variable(varClusterOperator, object[Rollup]()),
		cel.Variable(varReport, cel.MapType(cel.StringType, cel.MapType(cel.StringType, entry))),
		cel.Variable(varReports, cel.ListType(object[Item]())),
		cel.Variable(varExpected, cel.ListType(cel.StringType)),
		cel.Variable(varPlugins, cel.ListType(object[Plugin]())),
		cel.Variable(varKMSActive, cel.BoolType),
		cel.Variable(varConditions, cel.MapType(cel.StringType, condition)),
		cel.Variable(varProcess, cel.MapType(cel.StringType, cel.MapType(cel.StringType, cel.StringType))),
		cel.Variable(varWrites, cel.MapType(cel.StringType, object[Writes]())),
		cel.Variable(varMetrics, cel.MapType(cel.StringType, cel.MapType(cel.StringType, object[Metrics]()))),
		cel.Variable(varData, object[Data]()),
		cel.Variable(varEncryption, cel.MapType(cel.StringType, cel.ListType(cel.StringType))),
		cel.Variable(varOperator, object[Operator]()),
		cel.Variable(varOperations, object[Operations]()),
		cel.Variable(varHealth, object[Health]()),
		cel.Variable(varAPIServer, cel.MapType(cel.StringType, object[APIServer]())),
		cel.Variable(varAny, cel.StringType),
		cel.ExpressionNestingDepthLimit(maxDepth),
		cel.ParserRecursionLimit(maxDepth*2),
		cel.ParserExpressionSizeLimit(MaxExpressionChars),
	)
	if err != nil {
		return nil, fmt.Errorf("build the language of expectations: %w", err)
	}
	return &Compiler{env: env, done: map[string]*Program{}}, nil
}

// Variables of the state view.
const (
	varRollup          = "rollup"
	varClusterOperator = "clusterOperator"
	varReport          = "report"
	varReports         = "reports"
	varExpected        = "expected"
	varPlugins         = "plugins"
	varKMSActive       = "kmsActive"
	varConditions      = "conditions"
	varProcess         = "process"
	varWrites          = "writes"
	varMetrics         = "metrics"
	varData            = "data"
	varEncryption      = "encryption"
	varOperator        = "operator"
	varOperations      = "operations"
	varHealth          = "health"
	varAPIServer       = "apiServer"
	varAny             = "any"
)

// Variables lists them, for messages and completion.
func Variables() []string {
	return []string{varRollup, varClusterOperator, varReport, varReports, varExpected, varPlugins, varKMSActive,
		varConditions, varProcess, varWrites, varMetrics, varData, varEncryption, varOperator, varOperations, varHealth, varAPIServer, varAny}
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
