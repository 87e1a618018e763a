// Package printer prints what a command found: as text for people, or as JSON or YAML for programs.
package printer

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/kmsharness/kmsharness/internal/choice"
)

// Width bounds the lines of a table without -o wide, in columns.
const Width = 100

// Formats that every command with -o has, and Wide, which commands with a table have.
const (
	JSON = "json"
	YAML = "yaml"
	Wide = "wide"
)

// Output is the flag -o of a command. Empty: text.
type Output struct{ format string }

// AddFlag adds -o to a command, with JSON, YAML, and further formats of the command.
func AddFlag(cmd *cobra.Command, further ...string) *Output {
	o := &Output{}
	formats := append([]string{JSON, YAML}, further...)
	choice.Add(cmd, &o.format, "output", "o", "", "in place of text: "+choice.Or(formats), formats...)
	return o
}

// Is reports whether the flag has a format.
func (o *Output) Is(format string) bool { return o.format == format }

// Structured reports whether programs read what is printed.
func (o *Output) Structured() bool { return o.Is(JSON) || o.Is(YAML) }

// Print prints a value in the format of the flag, or calls text.
func (o *Output) Print(w io.Writer, value any, text func(io.Writer) error) error {
	switch o.format {
	case JSON:
		return WriteJSON(w, value)
	case YAML:
		out, err := yaml.Marshal(value)
		if err == nil {
			_, err = w.Write(out)
		}
		return err
	}
	return text(w)
}

// PrintTable prints a value in the format of the flag, or as a table.
func (o *Output) PrintTable(w io.Writer, value any, t Table) error {
	return o.Print(w, value, func(w io.Writer) error { return t.write(w, o.Is(Wide)) })
}

// WriteJSON writes indented JSON.
func WriteJSON(w io.Writer, value any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(value)
}

// Table has a header and rows. Without -o wide it has only the first Narrow columns (0: all), and the last of them is cut so that a line has at most
// Width columns.
type Table struct {
	Columns []string
	Narrow  int
	Rows    [][]string
}

func (t Table) write(w io.Writer, wide bool) error {
	shown := len(t.Columns)
	if t.Narrow > 0 && !wide {
		shown = t.Narrow
	}
	rows := append([][]string{t.Columns}, t.Rows...)
	widths := make([]int, shown)
	for _, row := range rows {
		for i, cell := range row[:min(len(row), shown)] {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	if !wide {
		rest := Width
		for _, width := range widths[:shown-1] {
			rest -= width + gap
		}
		widths[shown-1] = min(widths[shown-1], max(rest, utf8.RuneCountInString(t.Columns[shown-1])))
	}
	for _, row := range rows {
		var line strings.Builder
		for i, cell := range row[:min(len(row), shown)] {
			cell = cut(cell, widths[i])
			line.WriteString(cell + strings.Repeat(" ", widths[i]+gap-utf8.RuneCountInString(cell)))
		}
		if _, err := fmt.Fprintln(w, strings.TrimRight(line.String(), " ")); err != nil {
			return err
		}
	}
	return nil
}

// gap is between two columns of a table.
const gap = 2

// cut is a text of at most width characters.
func cut(text string, width int) string {
	if runes := []rune(text); len(runes) > width {
		return string(runes[:max(width-1, 0)]) + "…"
	}
	return text
}
