package scenario

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/kmsharness/kmsharness/contract"
)

// field is one field of the file format, bound to the variable that holds its value, as flags are. One table of fields for each mapping
// says all there is to know of it: the parser, the validation, the encoder and the schema are made from it.
type field struct {
	name     string
	required bool
	about    string // for people, in editors
	target   bool   // selects what an action acts on: the history shows it apart from the parameters
	value
}

// value is a variable with what it may hold.
type value struct {
	*shape
	// read takes the value from a document. It leaves out what does not have the right shape, which the checker has reported.
	read func(*yaml.Node)
	// get is the value as a parameter; nil if there is none.
	get func() any
	// encode gives the value as it stands in a file; nil: get's.
	encode func() *yaml.Node
	// check applies the rules for this value alone; nil: there are none.
	check func(v *validation, at place, name string)
	// resolve puts in the durations of a timing, and rename other names of nodes; nil: there are none.
	resolve func(contract.Timing) error
	rename  func(func(string) string)
}

func optional(name string, v value) field { return field{name: name, value: v} }

func required(name string, v value) field { return field{name: name, value: v, required: true} }

// doc describes a field, in a few words for editors.
func (f field) doc(about string) field {
	f.about = about
	return f
}

// ofTarget marks fields that select what an action acts on.
func ofTarget(fields ...field) []field {
	for i := range fields {
		fields[i].target = true
	}
	return fields
}

// unlessZero is a value as a parameter.
func unlessZero[T comparable](v T) any {
	if v == *new(T) {
		return nil
	}
	return v
}

func scalarValue(p *string, s *shape) value {
	return value{shape: s, read: func(n *yaml.Node) { *p = scalarText(n) }, get: func() any { return unlessZero(*p) }}
}

func textField(p *string) value { return scalarValue(p, scalar(kindText)) }

// formField is a text of a form, of which the rules for the whole scenario say more.
func formField(p *string, form *regexp.Regexp) value {
	return scalarValue(p, &shape{kind: kindText, form: form})
}

func keywordField(p *string, keywords ...string) value {
	v := scalarValue(p, &shape{kind: kindText, keywords: keywords})
	v.check = func(v *validation, at place, name string) { v.keyword(at, name, *p, keywords) }
	return v
}

// nodeField names a node, NodeAny or NodeAll; empty is all of them.
func nodeField(p *string) value {
	v := textField(p)
	v.check = func(v *validation, at place, _ string) { v.someNodes(at, *p) }
	v.rename = func(name func(string) string) { *p = name(*p) }
	return v
}

// oneNodeField names a node, or NodeAny.
func oneNodeField(p *string) value {
	v := nodeField(p)
	v.check = func(v *validation, at place, _ string) { v.nodeName(at, *p, append(slices.Clone(v.nodes), NodeAny)) }
	return v
}

func intField(p *int, least, most int) value {
	return value{shape: &shape{kind: kindInt, least: least, most: most},
		read: func(n *yaml.Node) {
			var i int
			if n.Decode(&i) == nil {
				*p = i
			}
		},
		get:   func() any { return unlessZero(*p) },
		check: func(v *validation, at place, name string) { v.number(at, name, *p, least, most) },
	}
}

func boolField(p *bool) value {
	return value{shape: scalar(kindBool), read: func(n *yaml.Node) {
		var b bool
		*p = n.Decode(&b) == nil && b
	}, get: func() any { return unlessZero(*p) }}
}

// durationField is a duration, which may be zero.
func durationField(p *Duration) value {
	return value{shape: scalar(kindTime),
		read: func(n *yaml.Node) { *p = D(scalarText(n)) },
		get: func() any {
			if p.IsZero() {
				return nil
			}
			return p.String()
		},
		check:   func(v *validation, at place, _ string) { v.duration(at, *p, false) },
		resolve: func(t contract.Timing) error { return p.resolve(t) },
	}
}

// positiveField is a duration of which zero would be nothing at all.
func positiveField(p *Duration) value {
	v := durationField(p)
	v.check = func(v *validation, at place, name string) {
		d, err := p.Resolve(contract.DefaultTiming())
		switch {
		case err != nil:
			v.add(at, "%v", err)
		case d == 0:
			v.add(at, "%s is 0, expected more", name)
		}
	}
	return v
}

func listField(p *[]string, s *shape) value {
	return value{shape: s,
		read: func(n *yaml.Node) {
			if n.Kind != yaml.SequenceNode {
				return
			}
			*p = []string{}
			for _, item := range n.Content {
				*p = append(*p, scalarText(item))
			}
		},
		get: func() any {
			if *p == nil {
				return nil
			}
			return *p
		},
		encode: func() *yaml.Node { return textList(*p) },
	}
}

// anyField is a value of any kind.
func anyField(p *any) value {
	return value{shape: scalar(kindAny), read: func(n *yaml.Node) { *p = plainValue(n) }, get: func() any { return *p }}
}

// mappingField is a mapping with fields of its own.
func mappingField(what string, fields ...field) value {
	return value{shape: mapping(what, fields...),
		read:   func(n *yaml.Node) { readFields(n, fields) },
		get:    func() any { return nil },
		encode: func() *yaml.Node { return encodeFields(fields) },
		check:  func(v *validation, at place, _ string) { v.fields(fields, at) },
		rename: func(name func(string) string) { renameNodes(fields, name) },
	}
}

func lagField(p *Lag) value {
	return value{shape: &shape{custom: checkLag}, read: p.read,
		get: func() any { return p.param() },
		check: func(v *validation, at place, name string) {
			v.duration(at, p.All, false)
			for _, node := range slices.Sorted(maps.Keys(p.Nodes)) {
				v.nodeName(at.at(node), node, v.nodes)
				v.duration(at.at(node), p.Nodes[node], false)
			}
		},
		resolve: p.resolve,
		rename:  p.rename,
	}
}

// Lag is how much later than at once something happens: on all nodes, or on each node of its own.
type Lag struct {
	All   Duration
	Nodes map[string]Duration
}

// Of is the lag on a node, of a resolved action.
func (l Lag) Of(node string) time.Duration {
	if d, ok := l.Nodes[node]; ok {
		return d.Value()
	}
	return l.All.Value()
}

func (l *Lag) read(n *yaml.Node) {
	if n.Kind != yaml.MappingNode {
		l.All = D(scalarText(n))
		return
	}
	l.Nodes = map[string]Duration{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		l.Nodes[n.Content[i].Value] = D(scalarText(n.Content[i+1]))
	}
}

func (l *Lag) param() any {
	switch {
	case l.Nodes != nil:
		texts := map[string]string{}
		for node, d := range l.Nodes {
			texts[node] = d.String()
		}
		return texts
	case l.All.IsZero():
		return nil
	}
	return l.All.String()
}

func (l *Lag) resolve(t contract.Timing) error {
	nodes := maps.Clone(l.Nodes)
	for node, d := range nodes {
		if err := d.resolve(t); err != nil {
			return fmt.Errorf("%s: %w", node, err)
		}
		nodes[node] = d
	}
	l.Nodes = nodes
	return l.All.resolve(t)
}

func (l *Lag) rename(name func(string) string) {
	if l.Nodes == nil {
		return
	}
	nodes := map[string]Duration{}
	for node, d := range l.Nodes {
		nodes[name(node)] = d
	}
	l.Nodes = nodes
}

func readFields(n *yaml.Node, fields []field) {
	for _, f := range fields {
		if child := childOf2(n, f.name); child != nil && f.read != nil {
			f.read(child)
		}
	}
}

func encodeFields(fields []field) *yaml.Node {
	n := &yaml.Node{Kind: yaml.MappingNode}
	for _, f := range fields {
		if v := f.node(); v != nil {
			n.Content = append(n.Content, text(f.name), v)
		}
	}
	if len(n.Content) == 0 {
		return nil
	}
	return n
}

// node is the value as it stands in a file; nil if there is none.
func (f field) node() *yaml.Node {
	if f.encode != nil {
		n := f.encode()
		if n == nil && f.required && f.kind == kindMapping {
			n = &yaml.Node{Kind: yaml.MappingNode}
		}
		return n
	}
	v := f.get()
	if v == nil && f.required && f.kind == kindInt {
		v = 0
	}
	if v == nil {
		return nil
	}
	return nodeOf(v)
}

func renameNodes(fields []field, name func(string) string) {
	for _, f := range fields {
		if f.rename != nil {
			f.rename(name)
		}
	}
}

// fields applies the rules of each field that was given.
func (v *validation) fields(fields []field, at place) {
	for _, f := range fields {
		here := at.at(f.name)
		if f.check != nil && (f.required || v.given(here, f)) {
			f.check(v, here, f.name)
		}
	}
}

// given reports whether a field stands in the file, or has a value in a scenario written in Go.
func (v *validation) given(at place, f field) bool {
	if v.root != nil {
		_, exact := at.node(v.root)
		return exact
	}
	return f.get() != nil || f.kind == kindMapping
}
