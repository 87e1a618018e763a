package scenario

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Problem is one mistake in a scenario. Where stands for the place of a scenario written in Go, which has no lines.
type Problem struct {
	File  string
	Pos   Position
	Where string
	What  string
}

// String is file:line:column: what, or name: place: what for a scenario written in Go.
func (p Problem) String() string {
	switch {
	case p.Pos.Line > 0:
		return fmt.Sprintf("%s:%d:%d: %s", p.File, p.Pos.Line, p.Pos.Column, p.What)
	case p.Where != "":
		return fmt.Sprintf("%s: %s: %s", p.File, p.Where, p.What)
	default:
		return fmt.Sprintf("%s: %s", p.File, p.What)
	}
}

// Problems is every mistake that was found, by file and place.
type Problems []Problem

func (ps Problems) Error() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// orNil is an error only if there is a problem: all of them by place, without repetitions.
func (ps Problems) orNil() error {
	if len(ps) == 0 {
		return nil
	}
	slices.SortStableFunc(ps, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Pos.Line, b.Pos.Line),
			cmp.Compare(a.Pos.Column, b.Pos.Column), cmp.Compare(a.Where, b.Where), cmp.Compare(a.What, b.What))
	})
	return slices.Compact(ps)
}

// oneOf is "a", "a or b", "a, b or c".
func oneOf(keywords []string) string {
	if len(keywords) < 2 {
		return strings.Join(keywords, "")
	}
	return strings.Join(keywords[:len(keywords)-1], ", ") + " or " + keywords[len(keywords)-1]
}

// quote shows a text of the file within a message, on one line and short.
func quote(s string) string { return fmt.Sprintf("%.64q", s) }
