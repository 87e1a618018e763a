package scenario

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/kmsharness/kmsharness/internal/suggest"
)

// kind is what a value of the file format must be.
type kind string

const (
	kindMapping kind = "a mapping"
	kindList    kind = "a list"
	kindText    kind = "a text"
	kindInt     kind = "a whole number"
	kindBool    kind = "true or false"
	kindTime    kind = "a duration" // checked by the rules, with its text
	kindAny     kind = "a value"
)

// shape describes a value of the file format: the part of the format that needs no knowledge of other parts.
type shape struct {
	kind     kind
	fields   []field        // of a mapping
	open     *shape         // of further fields of a mapping; nil if there are none
	item     *shape         // of the items of a list
	what     string         // in messages: "in metadata"
	keywords []string       // of a text: what it may be, for editors; the rules say so in their own words
	form     *regexp.Regexp // of a text, for editors as well
	least    int            // of a number or a list's length, with most; for editors as well
	most     int
	custom   func(c *checker, n *yaml.Node, at place)
}

// checker compares a document with its shape.
type checker struct {
	file     string
	problems Problems
	places   []place           // of the problems: the rules leave them alone
	steps    map[string]*shape // by verb, as far as there were some
}

func (c *checker) add(n *yaml.Node, at place, format string, args ...any) {
	c.problems = append(c.problems, Problem{File: c.file, Pos: position(n), What: fmt.Sprintf(format, args...)})
	c.places = append(c.places, at)
}

func (c *checker) check(n *yaml.Node, s *shape, at place) {
	if s.custom != nil {
		s.custom(c, n, at)
		return
	}
	if wrong := mismatch(n, s.kind); wrong != "" {
		c.add(n, at, "%s %s", at.subject(), wrong)
		return
	}
	switch s.kind {
	case kindMapping:
		c.mapping(n, s, at)
	case kindList:
		for i, item := range n.Content {
			c.check(item, s.item, at.index(i))
		}
	}
}

func (c *checker) mapping(n *yaml.Node, s *shape, at place) {
	names := fieldNames(s)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		j := slices.Index(names, key.Value)
		switch {
		case j >= 0:
			c.check(value, s.fields[j].shape, at.at(key.Value))
		case s.open != nil:
			c.check(value, s.open, at.at(key.Value))
		default:
			c.add(key, at.at(key.Value), "unknown field %s%s, expected %s%s", quote(key.Value), s.what, oneOf(names), suggest.DidYouMean(key.Value, names))
		}
	}
	for _, f := range s.fields {
		if f.required && childOf(n, f.name) == nil {
			c.add(n, at.at(f.name), "field %q is missing%s", f.name, s.what)
		}
	}
}

func fieldNames(s *shape) []string {
	names := make([]string, len(s.fields))
	for i, f := range s.fields {
		names[i] = f.name
	}
	return names
}

// mismatch says what is wrong with the type of a value, or nothing.
func mismatch(n *yaml.Node, want kind) string {
	switch {
	case want == kindAny:
		return ""
	case want == kindMapping && n.Kind == yaml.MappingNode, want == kindList && n.Kind == yaml.SequenceNode:
		return ""
	case n.Kind != yaml.ScalarNode || want == kindMapping || want == kindList:
		return fmt.Sprintf("is %s, expected %s", describe(n), want)
	}
	tag := n.ShortTag()
	switch want {
	case kindText:
		if tag == "!!str" {
			return ""
		}
		return textMismatch(n)
	case kindInt:
		if tag == "!!int" {
			return ""
		}
	case kindBool:
		if tag == "!!bool" {
			return ""
		}
	case kindTime:
		if tag != "!!null" {
			return ""
		}
	}
	return fmt.Sprintf("is %s, expected %s", describe(n), want)
}

func textMismatch(n *yaml.Node) string {
	if n.ShortTag() == "!!null" {
		return "is empty, expected a text"
	}
	if n.ShortTag() == "!!bool" && len(n.Value) > 1 { // a condition's status, most likely
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
