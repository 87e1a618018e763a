package scenario

import (
	"cmp"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/kmsharness/kmsharness/internal/suggest"
)

// checker compares a document with the shape of its mappings: what the decoder needs, with more to say about it.
type checker struct {
	file     string
	problems Problems
	places   []place // of the problems: the rules leave them alone
	parser   *Parser
}

func (c *checker) add(n *yaml.Node, at place, format string, args ...any) {
	c.problems = append(c.problems, Problem{File: c.file, Pos: position(n), What: fmt.Sprintf(format, args...)})
	c.places = append(c.places, at)
}

// document checks the whole document, and its name against the file's.
func (c *checker) document(root *yaml.Node) {
	s := shapeOf(reflect.TypeFor[file](), "the scenario")
	c.value(root, field{StructField: reflect.StructField{Type: reflect.TypeFor[file]()}, inner: &s}, nil)
	at := place{"metadata", "name"}
	name, exact := at.node(root)
	base := strings.TrimSuffix(strings.TrimSuffix(filepath.Base(c.file), ".yaml"), ".yml")
	if exact && name.ShortTag() == "!!str" && name.Value != "" && name.Value != base {
		c.add(name, at, "name is %s, expected the file's name %q", quote(name.Value), base)
	}
}

// value checks the type of a value, and what is in it.
func (c *checker) value(n *yaml.Node, f field, at place) {
	switch {
	case f.Type == stepType:
		c.step(n, at)
		return
	case f.Type == lagType && n.Kind == yaml.MappingNode: // one for each node
		f.Type = reflect.TypeFor[map[string]Duration]()
	}
	if wrong := mismatch(n, f); wrong != "" {
		c.add(n, at, "%s %s", at.subject(), wrong)
		return
	}
	switch kind := f.Type.Kind(); {
	case f.mapping():
		c.mapping(n, *f.inner, at)
	case kind == reflect.Slice, kind == reflect.Map:
		f.Type = f.Type.Elem()
		c.items(n, f, at)
	}
}

func (c *checker) items(n *yaml.Node, f field, at place) {
	if n.Kind == yaml.SequenceNode {
		for i, item := range n.Content {
			c.value(item, f, at.index(i))
		}
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		c.value(n.Content[i+1], f, at.at(n.Content[i].Value))
	}
}

func (c *checker) mapping(n *yaml.Node, s shape, at place) {
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		f, known := s.named(key.Value)
		switch {
		case known:
			c.value(value, f, at.at(key.Value))
		case s.open && value.ShortTag() == "!!null":
			c.add(value, at.at(key.Value), "%s is empty, expected a value", clip(key.Value))
		case !s.open:
			c.add(key, at.at(key.Value), "unknown field %s in %s, expected %s%s", quote(key.Value), s.what, oneOf(s.names()), suggest.DidYouMean(key.Value, s.names()))
		}
	}
	for _, f := range s.fields {
		if f.has("required") && childOf(n, f.name) == nil {
			c.add(n, at.at(f.name), "field %q is missing in %s", f.name, s.what)
		}
	}
}

// step finds the verb of a step and checks the fields that go with it.
func (c *checker) step(n *yaml.Node, at place) {
	if n.Kind != yaml.MappingNode {
		c.add(n, at, "a step is %s, expected one such as wait: 2I", describe(n))
		return
	}
	var found []*yaml.Node
	for i := 0; i < len(n.Content); i += 2 {
		if slices.Contains(c.parser.keywords, n.Content[i].Value) {
			found = append(found, n.Content[i])
		}
	}
	switch len(found) {
	case 0:
		c.noVerb(n, at)
	case 1:
		c.mapping(n, c.parser.steps[found[0].Value], at)
	default:
		c.add(found[1], at, "a second verb %q in the step that has %q, expected one verb per step", found[1].Value, found[0].Value)
	}
}

// noVerb blames the first field that is not a modifier: most likely it was meant to be the verb.
func (c *checker) noVerb(n *yaml.Node, at place) {
	for i := 0; i < len(n.Content); i += 2 {
		key := n.Content[i]
		if !slices.Contains([]string{"at", "after", "within", "for"}, key.Value) {
			c.add(key, at, "unknown verb %s, expected %s%s", quote(key.Value), oneOf(c.parser.keywords), suggest.DidYouMean(key.Value, c.parser.keywords))
			return
		}
	}
	c.add(n, at, "a step without a verb, expected %s", oneOf(c.parser.keywords))
}

// wanted is what a value must be, and the YAML tags of a scalar that it can have.
func (f field) wanted() (what string, tags []string) {
	switch {
	case f.Type == durationType, f.Type == lagType: // the rules check its text
		return "a duration", []string{"!!str", "!!int", "!!float", "!!bool", "!!timestamp"}
	case f.Tag.Get("format") == "int-or-string":
		return cmp.Or(f.Tag.Get("expected"), "a text or a whole number"), []string{"!!str", "!!int"}
	}
	switch f.Type.Kind() {
	case reflect.String:
		return "a text", []string{"!!str"}
	case reflect.Int:
		return "a whole number", []string{"!!int"}
	case reflect.Bool:
		return "true or false", []string{"!!bool"}
	case reflect.Slice:
		return "a list", nil
	}
	return "a mapping", nil
}

// mismatch says what is wrong with the type of a value, or nothing.
func mismatch(n *yaml.Node, f field) string {
	what, tags := f.wanted()
	switch {
	case f.Type.Kind() == reflect.Interface:
		return ""
	case n.Kind == yaml.MappingNode && what == "a mapping", n.Kind == yaml.SequenceNode && what == "a list":
		return ""
	case n.Kind == yaml.ScalarNode && slices.Contains(tags, n.ShortTag()) && n.Decode(reflect.New(f.Type).Interface()) == nil: // a number may be too large
		return ""
	case n.Kind != yaml.ScalarNode || what != "a text" || n.ShortTag() == "!!null":
		return fmt.Sprintf("is %s, expected %s", describe(n), what)
	case n.ShortTag() == "!!bool" && len(n.Value) > 1: // a condition's status, most likely
		return fmt.Sprintf("is %s, expected a text, did you mean %q?", describe(n), strings.ToUpper(n.Value[:1])+n.Value[1:])
	}
	return fmt.Sprintf("is %s, expected a text, did you mean %q?", describe(n), clip(n.Value))
}

func describe(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	}
	switch n.ShortTag() {
	case "!!null":
		return "empty"
	case "!!str":
		return "the text " + quote(n.Value)
	case "!!int", "!!float":
		return "the number " + clip(n.Value)
	case "!!bool":
		return clip(n.Value)
	}
	return strings.TrimPrefix(n.ShortTag(), "!!") + " " + clip(n.Value)
}

func clip(s string) string { return fmt.Sprintf("%.100s", s) }
