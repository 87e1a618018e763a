package scenario

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"go.yaml.in/yaml/v3"

	"github.com/kmsharness/kmsharness/contract"
)

// Encode writes s as a file that Parse reads as the same scenario. What has its default is left out.
func (s *Scenario) Encode() ([]byte, error) {
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	err := e.Encode(object(
		pair("apiVersion", text(APIVersion)),
		pair("kind", text(KindName)),
		pair("metadata", object(
			pair("name", text(s.Name)),
			pair("title", text(s.Title)),
			pair("area", text(s.Area)),
			pair("labels", textList(s.Labels)),
			pair("onlyKind", text(s.OnlyKind)),
			pair("covers", textList(s.Covers)))),
		pair("spec", s.spec())))
	if err == nil {
		err = e.Close()
	}
	if err != nil {
		return nil, fmt.Errorf("encode scenario %s: %w", s.Name, err)
	}
	return b.Bytes(), nil
}

func (s *Scenario) spec() *yaml.Node {
	var excused *yaml.Node
	for _, x := range s.Excused {
		excused = appended(excused, flow(object(pair("invariant", text(x.Invariant)), pair("reason", text(x.Reason)))))
	}
	topology := flow(object(
		pair("controlPlanes", value(s.Topology.ControlPlanes)),
		pair("keyIDs", textList(s.Topology.KeyIDs)),
		pair("aggregators", value(s.Topology.Aggregators)),
		pair("apiServers", s.Topology.apiServerList()),
		pair("profile", text(s.Topology.Profile)),
		pair("start", unless(s.Topology.Start, StartRunning)),
		pair("lifecycle", unless(s.Topology.Lifecycle, LifecycleDirect)),
		pair("sockets", unless(s.Topology.Sockets, SocketsByKey)), pair("crds", unless(s.Topology.CRDs, ""))))
	return object(pair("topology", topology), pair("contract", unless(s.namedContract(), "")),
		pair("operator", unless(s.Operator, Operators()[0])), pair("clusterOperator", s.ClusterOperator.encode()), pair("excused", excused), pair("steps", stepList(s.Steps)))
}

func (c ClusterOperator) encode() *yaml.Node {
	o := flow(object(pair("degradedInertia", textList(c.DegradedInertia)), pair("unknownStatus", unless(c.UnknownStatus, contract.UnknownRules()[0]))))
	if len(o.Content) == 0 {
		return nil
	}
	return o
}

func (t Topology) apiServerList() *yaml.Node {
	if len(t.Further()) == 0 {
		return nil
	}
	return textList(t.APIServers)
}

func stepList(steps []Step) *yaml.Node {
	list := &yaml.Node{Kind: yaml.SequenceNode}
	for _, s := range steps {
		list.Content = append(list.Content, s.encode())
	}
	return list
}

func (s Step) encode() *yaml.Node {
	var pairs [][2]*yaml.Node
	switch {
	case s.Action != nil:
		pairs = append(pairs, pair(string(s.Action.Verb), s.Action.encode()))
	case s.Expect != nil:
		word := s.Expect.Mode.Word()
		pairs = append(pairs, pair(word, text(s.Expect.CEL)), pair(boundOf(word), text(s.Expect.Bound.Text)), pair(wordOrigin, text(s.Expect.Origin)))
	case s.Parallel != nil:
		pairs = append(pairs, pair(wordParallel, stepList(s.Parallel)))
	case s.Repeat != nil:
		pairs = append(pairs, pair(wordRepeat, object(pair(wordUntil, text(s.Repeat.Until)), pair("times", value(s.Repeat.Times)), pair("steps", stepList(s.Repeat.Steps)))))
	default:
		pairs = append(pairs, pair(wordWait, text(s.Wait.Text)))
	}
	return object(append(pairs, pair(wordAt, text(s.At.Text)), pair(wordAfter, text(s.After.Text)))...)
}

// encode is the opposite of the builder's action: selectors first, then the parameters by name.
func (a Action) encode() *yaml.Node {
	var pairs [][2]*yaml.Node
	switch a.Verb {
	case VerbInject, VerbRelease:
		plugin := object(pair("apiServer", text(a.Plugin.APIServer)), pair("node", text(a.Plugin.Node)), pair("keyID", text(a.Plugin.KeyID)))
		pairs = [][2]*yaml.Node{pair("plugin", plugin), pair("fault", text(a.Fault)), pair("method", text(a.Method))}
	case VerbStart, VerbStop, VerbKill, VerbPause, VerbResume, VerbRestart, VerbClock, VerbRefuse, VerbWatches, VerbCredential:
		p := a.Process
		pairs = [][2]*yaml.Node{pair("role", text(p.Role)), pair("apiServer", text(p.APIServer)), pair("node", text(p.Node)), pair("keyID", text(p.KeyID)), pair("instance", text(p.Instance))}
	case VerbLink:
		pairs = [][2]*yaml.Node{pair("from", text(a.Link.From)), pair("to", text(a.Link.To)), pair("node", text(a.Link.Node))}
	}
	for _, name := range slices.Sorted(maps.Keys(a.Params)) {
		pairs = append(pairs, pair(name, value(a.Params[name])))
	}
	return flow(object(pairs...))
}

// pair is one field; without a value it is left out.
func pair(name string, v *yaml.Node) [2]*yaml.Node { return [2]*yaml.Node{text(name), v} }

func object(pairs ...[2]*yaml.Node) *yaml.Node {
	n := &yaml.Node{Kind: yaml.MappingNode}
	for _, p := range pairs {
		if p[1] != nil {
			n.Content = append(n.Content, p[0], p[1])
		}
	}
	return n
}

// text is a string that stays one, also if it looks like a number; nothing where it is empty.
func text(s string) *yaml.Node {
	if s == "" {
		return nil
	}
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s}
}

func unless(s, standard string) *yaml.Node {
	if s == standard {
		return nil
	}
	return text(s)
}

func textList(of []string) (list *yaml.Node) {
	for _, s := range of {
		list = appended(list, text(s))
	}
	return list
}

func appended(list, item *yaml.Node) *yaml.Node {
	if list == nil {
		list = &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
	}
	list.Content = append(list.Content, item)
	return list
}

// value is a parameter of the kinds that the builder makes.
func value(v any) *yaml.Node {
	if f, ok := v.(float64); ok && f == math.Trunc(f) {
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!float", Value: strconv.FormatFloat(f, 'f', 1, 64)}
	}
	if s, ok := v.(string); ok {
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s}
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
