package scenario

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/kmsharness/kmsharness/contract"
)

// Encode writes s as a file that Parse reads as the same scenario. What has its default is left out.
func (s *Scenario) Encode() ([]byte, error) {
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	c := *s
	err := e.Encode(encodeFields(c.fields()))
	if err == nil {
		err = e.Close()
	}
	if err != nil {
		return nil, fmt.Errorf("encode scenario %s: %w", s.Name, err)
	}
	return b.Bytes(), nil
}

// decode turns a document into a scenario. It takes what has the right shape and leaves out the rest, which the checker has reported.
func decode(root *yaml.Node, file string) *Scenario {
	s := &Scenario{File: file, Topology: Topology{ControlPlanes: DefaultControlPlanes, Aggregators: DefaultAggregators}}
	readFields(root, s.fields())
	spec := childOf2(root, "spec")
	topology := childOf2(spec, "topology")
	missing := func(n *yaml.Node, field string) bool { return childOf2(n, field) == nil }
	s.setDefaults(defaults{keyIDs: missing(topology, "keyIDs"), start: missing(topology, "start"), lifecycle: missing(topology, "lifecycle"),
		contract: missing(spec, "contract"), operator: missing(spec, "operator")})
	return s
}

func childOf2(n *yaml.Node, name string) *yaml.Node {
	if n == nil {
		return nil
	}
	return childOf(n, name)
}

func scalarText(n *yaml.Node) string {
	if n == nil || n.Kind != yaml.ScalarNode || n.ShortTag() == "!!null" {
		return ""
	}
	return n.Value
}

// stepsField is a list of steps.
func stepsField(p *[]Step) value {
	return value{shape: some(stepShape(), maxSteps),
		read:   func(n *yaml.Node) { *p = readSteps(n) },
		get:    func() any { return nil },
		encode: func() *yaml.Node { return encodeSteps(*p) },
	}
}

func readSteps(n *yaml.Node) []Step {
	steps := []Step{} // empty is not absent
	if n.Kind == yaml.SequenceNode {
		for _, item := range n.Content {
			steps = append(steps, readStep(item))
		}
	}
	return steps
}

func readStep(n *yaml.Node) Step {
	s := Step{Pos: position(n)}
	if n.Kind != yaml.MappingNode {
		return s
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		keyword, arguments := n.Content[i].Value, n.Content[i+1]
		if a := NewAction(Verb(keyword)); a != nil {
			s.Action = a
			readFields(arguments, a.fields())
			if o, ok := a.(interface{ readOpen(*yaml.Node) }); ok {
				o.readOpen(arguments)
			}
			continue
		}
		s.begin(keyword)
	}
	readFields(n, s.fields())
	return s
}

// begin makes a step what one of the words that are no verb says.
func (s *Step) begin(keyword string) {
	switch keyword {
	case keyExpect:
		s.Expect = &Expectation{Mode: ModeWithin}
	case keyHolds:
		s.Expect = &Expectation{Mode: ModeHolds}
	case keyNever:
		s.Expect = &Expectation{Mode: ModeNever}
	case keyRepeat:
		s.Repeat = &Repeat{}
	}
}

// fields of a step, without its action.
func (s *Step) fields() []field {
	var fields []field
	switch {
	case s.Expect != nil:
		keyword := s.Expect.Mode.Keyword()
		fields = append(fields, required(keyword, formField(&s.Expect.CEL, someText)), required(boundOf(keyword), durationField(&s.Expect.Bound)).doc("for how long it is watched"), origin(&s.Expect.Origin),
			optional(keyGiven, formField(&s.Expect.Given, someText)).doc("the effect of a fault: if it never was true meanwhile, what was not met is not judged"))
	case s.Repeat != nil:
		fields = append(fields, required(keyRepeat, mappingField(keyRepeat, s.Repeat.fields()...)))
	case s.Action == nil:
		fields = append(fields, optional(keyParallel, stepsField(&s.Parallel)), optional(keyWait, durationField(&s.Wait)))
	}
	return append(fields, optional(keyAt, durationField(&s.At)).doc("not before this time from the beginning of the steps"),
		optional(keyAfter, durationField(&s.After)).doc("this long after the previous step"))
}

func (r *Repeat) fields() []field {
	times := intField(&r.Times, 1, MaxTimes)
	return []field{required("times", times),
		optional(keyUntil, formField(&r.Until, someText)).doc("ends the repetition after the round in which it is true; fails if that never happens"), required("steps", stepsField(&r.Steps))}
}

func origin(p *string) field {
	return optional(keyOrigin, keywordField(p, OriginSource, OriginHouse)).doc(
		"what it rests on: a source (default), or a decision of this project, which fails a program of somebody else only with --strict")
}

func encodeSteps(steps []Step) *yaml.Node {
	if steps == nil {
		return nil
	}
	list := &yaml.Node{Kind: yaml.SequenceNode}
	for _, s := range steps {
		n := encodeFields(s.fields())
		if n == nil {
			n = &yaml.Node{Kind: yaml.MappingNode}
		}
		if s.Action != nil {
			n.Content = append([]*yaml.Node{text(string(s.Action.Verb())), encodeAction(s.Action)}, n.Content...)
		}
		list.Content = append(list.Content, n)
	}
	return list
}

func encodeAction(a Action) *yaml.Node {
	n := encodeFields(a.fields())
	if n == nil {
		n = &yaml.Node{Kind: yaml.MappingNode}
	}
	if o, ok := a.(interface{ openParams() map[string]any }); ok {
		params := o.openParams()
		for _, name := range slices.Sorted(maps.Keys(params)) {
			n.Content = append(n.Content, text(name), nodeOf(params[name]))
		}
	}
	return flow(n)
}

// text is a string that stays one, also if it looks like a number; nothing where it is empty.
func text(s string) *yaml.Node {
	if s == "" {
		return nil
	}
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s}
}

func textList(of []string) *yaml.Node {
	if len(of) == 0 {
		return nil
	}
	list := &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
	for _, s := range of {
		list.Content = append(list.Content, text(s))
	}
	return list
}

// nodeOf is a value as it stands in a file.
func nodeOf(v any) *yaml.Node {
	switch v := v.(type) {
	case float64:
		if v == math.Trunc(v) {
			return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!float", Value: strconv.FormatFloat(v, 'f', 1, 64)}
		}
	case string:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: v}
	}
	n := &yaml.Node{}
	if n.Encode(v) != nil {
		return nil // a value of no scenario
	}
	return n
}

func flow(n *yaml.Node) *yaml.Node {
	n.Style = yaml.FlowStyle
	for _, child := range n.Content {
		if child.Kind != yaml.ScalarNode {
			flow(child)
		}
	}
	return n
}

// plainValue is what stands in a file: string, int, float64, bool, []string, []any or map[string]any.
func plainValue(n *yaml.Node) any {
	switch n.Kind {
	case yaml.SequenceNode:
		return plainList(n)
	case yaml.MappingNode:
		m := map[string]any{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			m[n.Content[i].Value] = plainOrNull(n.Content[i+1])
		}
		return m
	}
	switch n.ShortTag() {
	case "!!int":
		if i, err := strconv.Atoi(n.Value); err == nil {
			return i
		}
	case "!!float":
		if f, err := strconv.ParseFloat(n.Value, 64); err == nil {
			return f
		}
	case "!!bool":
		var v bool
		if n.Decode(&v) == nil {
			return v
		}
	}
	return scalarText(n)
}

// plainOrNull is plainValue within another value, where null says something: a merge patch removes by it.
func plainOrNull(n *yaml.Node) any {
	if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" {
		return nil
	}
	return plainValue(n)
}

func plainList(n *yaml.Node) any {
	texts, values := []string{}, []any{}
	for _, item := range n.Content {
		v := plainOrNull(item)
		values = append(values, v)
		if s, ok := v.(string); ok {
			texts = append(texts, s)
		}
	}
	if len(texts) == len(values) {
		return texts
	}
	return values
}

// openFields are the fields of a mapping that are not among those that are known.
func openFields(n *yaml.Node, known []field) (params map[string]any) {
	if n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		name := n.Content[i].Value
		if slices.ContainsFunc(known, func(f field) bool { return f.name == name }) {
			continue
		}
		if params == nil {
			params = map[string]any{}
		}
		params[name] = plainValue(n.Content[i+1])
	}
	return params
}

// shownParams are parameters as a person writes them.
func shownParams(params map[string]any) map[string]any {
	out := map[string]any{}
	for name, v := range params {
		switch v := v.(type) {
		case time.Duration:
			out[name] = v.String()
		case map[string]time.Duration:
			texts := map[string]string{}
			for node, d := range v {
				texts[node] = d.String()
			}
			out[name] = texts
		default:
			out[name] = v
		}
	}
	return out
}

// resolveValue is a parameter of a fault that is a duration, resolved.
func resolveValue(value any, t contract.Timing) (any, error) {
	switch v := value.(type) {
	case map[string]time.Duration, time.Duration:
		return v, nil
	case Duration:
		return v.Resolve(t)
	case string:
		return D(v).Resolve(t)
	case int, float64:
		return D(fmt.Sprint(v)).Resolve(t)
	case map[string]any:
		out := map[string]time.Duration{}
		for node, one := range v {
			d, err := resolveValue(one, t)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", node, err)
			}
			out[node], _ = d.(time.Duration)
		}
		return out, nil
	default:
		return nil, fmt.Errorf("is a %T, expected a duration", value)
	}
}

func wrapName(name string, err error) error { return fmt.Errorf("%s: %w", name, err) }

// parameters are the parameters of an action in the order of their names, in parentheses, but for some.
func parameters(a Action, but ...string) string {
	var all []string
	params := Params(a)
	for _, name := range slices.Sorted(maps.Keys(params)) {
		if !slices.Contains(but, name) {
			all = append(all, fmt.Sprintf("%s %v", name, params[name]))
		}
	}
	if len(all) == 0 {
		return ""
	}
	return " (" + strings.Join(all, ", ") + ")"
}

// ofNode names the node of something that each node has.
func ofNode(node string) string {
	switch node {
	case "", NodeAll:
		return " of all nodes"
	case NodeAny:
		return " of the node that is drawn"
	}
	return " of " + node
}
