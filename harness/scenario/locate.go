package scenario

import (
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

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
func doubled(value string, column int, escaped string) int {
	runes := []rune(value)
	n := 0
	for _, r := range runes[:min(column, len(runes))] {
		if strings.ContainsRune(escaped, r) {
			n++
		}
	}
	return n
}
