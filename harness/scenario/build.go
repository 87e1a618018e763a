package scenario

import (
	"strconv"

	"go.yaml.in/yaml/v3"
)

// build turns a document into a scenario. It takes what has the right shape and leaves out the rest, which the
// checker has reported.
func build(root *yaml.Node, file string) *Scenario {
	b := builder{}
	meta, spec := b.child(root, "metadata"), b.child(root, "spec")
	topology, clusterOperator := b.child(spec, "topology"), b.child(spec, "clusterOperator")
	s := &Scenario{
		File:     file,
		Name:     b.text(meta, "name"),
		Title:    b.text(meta, "title"),
		Area:     b.text(meta, "area"),
		Labels:   b.texts(meta, "labels"),
		OnlyKind: b.text(meta, "onlyKind"),
		Covers:   b.texts(meta, "covers"),
		Contract: b.text(spec, "contract"),
		Operator: b.text(spec, "operator"),
		Topology: Topology{
			ControlPlanes: b.integer(topology, "controlPlanes", DefaultControlPlanes),
			KeyIDs:        b.texts(topology, "keyIDs"),
			Aggregators:   b.integer(topology, "aggregators", DefaultAggregators),
			Profile:       b.text(topology, "profile"),
			APIServers:    b.texts(topology, "apiServers"),
			Start:         b.text(topology, "start"),
			Lifecycle:     b.text(topology, "lifecycle"),
			Sockets:       b.text(topology, "sockets"),
			CRDs:          b.text(topology, "crds"),
		},
		ClusterOperator: ClusterOperator{
			DegradedInertia: b.texts(clusterOperator, "degradedInertia"),
			UnknownStatus:   b.text(clusterOperator, "unknownStatus"),
		},
		Steps: b.steps(b.child(spec, "steps")),
	}
	if s.Topology.APIServers == nil && childOf2(topology, "apiServers") != nil {
		s.Topology.APIServers = []string{}
	}
	for _, e := range b.items(b.child(spec, "excused")) {
		s.Excused = append(s.Excused, Excuse{b.text(e, "invariant"), b.text(e, "reason")})
	}
	missing := func(n *yaml.Node, field string) bool { return childOf2(n, field) == nil }
	s.setDefaults(defaults{keyIDs: missing(topology, "keyIDs"), start: missing(topology, "start"), lifecycle: missing(topology, "lifecycle"), sockets: missing(topology, "sockets"),
		contract: missing(spec, "contract"), operator: missing(spec, "operator"), unknownStatus: missing(clusterOperator, "unknownStatus")})
	return s
}

// builder reads values; a nil or wrong node gives the zero value.
type builder struct{}

func childOf2(n *yaml.Node, name string) *yaml.Node {
	if n == nil {
		return nil
	}
	return childOf(n, name)
}

func (builder) child(n *yaml.Node, name string) *yaml.Node { return childOf2(n, name) }

func (b builder) text(n *yaml.Node, name string) string { return scalarText(b.child(n, name)) }

func scalarText(n *yaml.Node) string {
	if n == nil || n.Kind != yaml.ScalarNode || n.ShortTag() == "!!null" {
		return ""
	}
	return n.Value
}

func (builder) items(n *yaml.Node) []*yaml.Node {
	if n == nil || n.Kind != yaml.SequenceNode {
		return nil
	}
	return n.Content
}

func (b builder) texts(n *yaml.Node, name string) []string {
	var out []string
	for _, item := range b.items(b.child(n, name)) {
		out = append(out, scalarText(item))
	}
	return out
}

func (b builder) integer(n *yaml.Node, name string, otherwise int) int {
	child := b.child(n, name)
	if child == nil {
		return otherwise
	}
	var i int
	if child.Decode(&i) != nil {
		return otherwise
	}
	return i
}

func (b builder) duration(n *yaml.Node, name string) Duration {
	child := b.child(n, name)
	if child == nil {
		return Duration{}
	}
	return Duration{Text: scalarText(child), Pos: position(child)}
}

func (b builder) steps(n *yaml.Node) []Step {
	var steps []Step
	for _, item := range b.items(n) {
		steps = append(steps, b.step(item))
	}
	return steps
}

func (b builder) step(n *yaml.Node) Step {
	s := Step{Pos: position(n), At: b.duration(n, wordAt), After: b.duration(n, wordAfter), Wait: b.duration(n, wordWait)}
	for mode, word := range map[Mode]string{ModeWithin: wordExpect, ModeHolds: wordHolds, ModeNever: wordNever} {
		if b.child(n, word) != nil {
			s.Expect = &Expectation{Mode: mode, CEL: b.text(n, word), Bound: b.duration(n, boundOf(word)), Origin: b.text(n, wordOrigin)}
		}
	}
	if b.child(n, wordParallel) != nil {
		s.Parallel = append([]Step{}, b.steps(b.child(n, wordParallel))...) // empty is not absent
	}
	if r := b.child(n, wordRepeat); r != nil {
		s.Repeat = &Repeat{Until: b.text(r, wordUntil), Times: b.integer(r, "times", 0), Steps: b.steps(b.child(r, "steps"))}
	}
	for _, verb := range Verbs() {
		if arguments := b.child(n, string(verb)); arguments != nil {
			s.Action = b.action(verb, arguments)
		}
	}
	return s
}

// action sorts the arguments of a verb into selectors and parameters.
func (b builder) action(verb Verb, n *yaml.Node) *Action {
	a := &Action{Verb: verb}
	taken := map[string]bool{}
	take := func(name string) string { taken[name] = true; return b.text(n, name) }
	switch verb {
	case VerbInject, VerbRelease:
		plugin := b.child(n, "plugin")
		taken["plugin"] = true
		a.Plugin = Selector{APIServer: b.text(plugin, "apiServer"), Node: b.text(plugin, "node"), KeyID: b.text(plugin, "keyID")}
		a.Fault, a.Method = take("fault"), take("method")
	case VerbStart, VerbStop, VerbKill, VerbPause, VerbResume, VerbRestart:
		a.Process = Selector{Role: take("role"), APIServer: take("apiServer"), Node: take("node"), KeyID: take("keyID"), Instance: take("instance")}
	case VerbClock, VerbRefuse:
		a.Process = Selector{Role: take("role"), Node: take("node")}
	case VerbWatches, VerbCredential:
		a.Process = Selector{Node: take("node")}
	case VerbLink:
		a.Link = Selector{From: take("from"), To: take("to"), Node: take("node")}
	}
	if n.Kind != yaml.MappingNode {
		return a
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if name := n.Content[i].Value; !taken[name] {
			a.set(name, b.value(n.Content[i+1]))
		}
	}
	return a
}

func (a *Action) set(name string, value any) {
	if a.Params == nil {
		a.Params = map[string]any{}
	}
	a.Params[name] = value
}

// value is a parameter: string, int, float64, bool, []string, []any or map[string]any.
func (b builder) value(n *yaml.Node) any {
	switch n.Kind {
	case yaml.SequenceNode:
		return b.list(n)
	case yaml.MappingNode:
		m := map[string]any{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			m[n.Content[i].Value] = b.value(n.Content[i+1])
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

func (b builder) list(n *yaml.Node) any {
	texts, values := []string{}, []any{}
	for _, item := range n.Content {
		v := b.value(item)
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
