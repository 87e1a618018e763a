package scenario

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// place is where something stands in a scenario, by the names of the file format: spec, steps, 2, inject, plugin, node.
// The rules speak of places, so that they are the same for a file, where a place has a line, and for a scenario
// written in Go, where it has none.
type place []string

func (p place) at(names ...string) place {
	return append(append(make(place, 0, len(p)+len(names)), p...), names...)
}

func (p place) index(i int) place { return p.at(strconv.Itoa(i)) }

// String is steps[2].inject.plugin.node; spec and metadata are left out, since nothing is in both.
func (p place) String() string {
	var b strings.Builder
	for i, name := range p {
		switch _, err := strconv.Atoi(name); {
		case i == 0 && (name == "spec" || name == "metadata"):
		case err == nil && b.Len() > 0:
			fmt.Fprintf(&b, "[%s]", name)
		case b.Len() > 0:
			b.WriteString("." + name)
		default:
			b.WriteString(name)
		}
	}
	return b.String()
}

// subject names the value at a place at the beginning of a message.
func (p place) subject() string {
	if len(p) == 0 {
		return "the scenario"
	}
	last := p[len(p)-1]
	if _, err := strconv.Atoi(last); err == nil && len(p) > 1 {
		return "an item of " + clip(p[len(p)-2])
	}
	return clip(last)
}

func (p place) within(q place) bool { return len(p) >= len(q) && slices.Equal(p[:len(q)], q) }

func position(n *yaml.Node) Position { return Position{max(1, n.Line), max(1, n.Column)} }

// node finds the value at a place, or the nearest value around it.
func (p place) node(root *yaml.Node) (n *yaml.Node, exact bool) {
	n = root
	for _, name := range p {
		child := childOf(n, name)
		if child == nil {
			return n, false
		}
		n = child
	}
	return n, true
}

// childOf is the value of a field or the item of an index; nil if there is none.
func childOf(n *yaml.Node, name string) *yaml.Node {
	if n == nil {
		return nil
	}
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value == name {
				return n.Content[i+1]
			}
		}
	case yaml.SequenceNode:
		if i, err := strconv.Atoi(name); err == nil && i >= 0 && i < len(n.Content) {
			return n.Content[i]
		}
	}
	return nil
}

// locate finds a place within the text of a scalar in the source's lines: line (1-based) and column (0-based, in code
// points) of its value. What cannot be found, such as a place after an escape like \n, is the scalar's beginning.
func locate(source []string, n *yaml.Node, line, column int) Position {
	pos := position(n)
	switch {
	case n.Style&yaml.LiteralStyle != 0:
		return Position{pos.Line + line, indentation(source, pos.Line) + column + 1}
	case n.Style&yaml.FoldedStyle != 0:
		return folded(source, Position{pos.Line + 1, indentation(source, pos.Line) + 1}, column)
	case n.Style&yaml.SingleQuotedStyle != 0:
		return folded(source, Position{pos.Line, pos.Column + 1}, column+doubled(n.Value, column, "'"))
	case n.Style&yaml.DoubleQuotedStyle != 0:
		return folded(source, Position{pos.Line, pos.Column + 1}, column+doubled(n.Value, column, `"\`))
	default:
		return folded(source, pos, column)
	}
}

// indentation of the block whose first line follows.
func indentation(source []string, line int) int {
	if line >= len(source) {
		return 0
	}
	return len(source[line]) - len(strings.TrimLeft(source[line], " "))
}

// folded walks over lines that were joined with one space each.
func folded(source []string, pos Position, column int) Position {
	for line := pos.Line; line <= len(source); line++ {
		text := strings.TrimRight(source[line-1], " \r")
		start := pos.Column
		if line > pos.Line {
			start = 1 + len(text) - len(strings.TrimLeft(text, " "))
		}
		room := utf8.RuneCountInString(text) - start + 1
		if column <= room {
			return Position{line, start + column}
		}
		column -= room + 1
	}
	return pos
}

// doubled counts characters before column that take two in a quoted text.
func doubled(value string, column int, escaped string) (n int) {
	runes := []rune(value)
	before := string(runes[:min(column, len(runes))])
	for _, r := range escaped {
		n += strings.Count(before, string(r))
	}
	return n
}
