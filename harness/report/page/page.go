package page

import (
	"cmp"
	"embed"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"

	"github.com/kmsharness/kmsharness/internal/style"
)

//go:embed assets
var assets embed.FS

type Page struct {
	Runs []Run
	// Counts is the verdict of all runs on one line, Coverage a line on which invariants judged nothing.
	Counts, Coverage string
}

// Write writes the page as one file.
func (p Page) Write(w io.Writer) error {
	p.Runs = slices.Clone(p.Runs)
	t, err := template.ParseFS(assets, "assets/page.html")
	if err != nil {
		return fmt.Errorf("page: %w", err)
	}
	js, err := script()
	if err != nil {
		return fmt.Errorf("page: %w", err)
	}
	for i := range p.Runs {
		p.Runs[i] = p.Runs[i].clean()
	}
	if err := t.Execute(w, content{Page: p, CSS: style.Sheet(), JS: template.JS(js)}); err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	return nil
}

// script is all of assets/*.js in the order of their names, as one function.
func script() (string, error) {
	entries, err := assets.ReadDir("assets")
	if err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString("(() => {\n'use strict';\n")
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".js") {
			continue
		}
		data, err := assets.ReadFile("assets/" + e.Name())
		if err != nil {
			return "", err
		}
		b.Write(data)
	}
	b.WriteString("})();\n")
	return b.String(), nil
}

type content struct {
	Page
	CSS template.CSS
	JS  template.JS
}

// Title names what is shown.
func (p Page) Title() string {
	if len(p.Runs) == 1 {
		return p.Runs[0].Result.Scenario + " on " + p.Runs[0].Column
	}
	return fmt.Sprintf("%d runs on %s", len(p.Runs), strings.Join(p.Columns(), ", "))
}

// Broken are the runs that did not pass, in the order of the matrix.
func (p Page) Broken() (out []Run) {
	for _, r := range p.Runs {
		if r.Result.Status.Bad() {
			out = append(out, r)
		}
	}
	return out
}

// Columns of the matrix, in the order in which they came.
func (p Page) Columns() (out []string) {
	for _, r := range p.Runs {
		if !slices.Contains(out, r.Column) {
			out = append(out, r.Column)
		}
	}
	return out
}

// Width of the matrix in columns.
func (p Page) Width() int {
	if p.Forms() {
		return len(p.Columns()) + 2
	}
	return len(p.Columns()) + 1
}

// Forms reports whether a run was in another wire form than the default: then the matrix has a column for it.
func (p Page) Forms() bool {
	return slices.ContainsFunc(p.Runs, func(r Run) bool { return r.Result.OtherForm() })
}

type Area struct {
	Name string
	Rows []MatrixRow
}

// MatrixRow is one scenario; a cell is nil where it was not run.
type MatrixRow struct {
	Scenario, Form, Title string
	Cells                 []*Run
}

// Areas are the rows of the matrix by area and name.
func (p Page) Areas() (out []Area) {
	columns := p.Columns()
	sorted := slices.Clone(p.Runs)
	slices.SortStableFunc(sorted, func(a, b Run) int {
		return cmp.Or(cmp.Compare(a.Result.Area, b.Result.Area), cmp.Compare(a.Result.Scenario, b.Result.Scenario), cmp.Compare(a.Result.Form, b.Result.Form))
	})
	for _, r := range sorted {
		if n := len(out); n == 0 || out[n-1].Name != r.Result.Area {
			out = append(out, Area{Name: r.Result.Area})
		}
		area := &out[len(out)-1]
		if n := len(area.Rows); n == 0 || area.Rows[n-1].Scenario != r.Result.Scenario || area.Rows[n-1].Form != r.Result.Form {
			area.Rows = append(area.Rows, MatrixRow{Scenario: r.Result.Scenario, Form: r.Result.Form, Title: r.Result.Title, Cells: make([]*Run, len(columns))})
		}
		area.Rows[len(area.Rows)-1].Cells[slices.Index(columns, r.Column)] = &r
	}
	return out
}

// Charts are the latencies of all runs, by column.
func (p Page) Charts() (out []Chart) {
	for _, column := range p.Columns() {
		out = append(out, charts(" on "+column, slices.DeleteFunc(slices.Clone(p.Runs), func(r Run) bool { return r.Column != column }))...)
	}
	return out
}

func (r Run) Charts() []Chart { return charts("", []Run{r}) }
