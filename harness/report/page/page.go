package page

import (
	"cmp"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"io"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/kmsharness/kmsharness/internal/style"
	"github.com/kmsharness/kmsharness/internal/text"
)

//go:embed assets
var assets embed.FS

type Page struct {
	Runs []Run
	// Counts is the verdict of all runs on one line, Coverage a line on which invariants judged nothing.
	Counts, Coverage string
}

// Write writes the page as one file. Texts that programs under test may have written are shown without characters that would be no text.
func (p Page) Write(w io.Writer) error {
	words := template.FuncMap{"css": style.Sheet, "js": script, "safe": safe, "seconds": seconds, "tenths": text.Tenths}
	t, err := template.New("page.html").Funcs(words).ParseFS(assets, "assets/page.html")
	if err == nil {
		err = t.Execute(w, p)
	}
	if err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	return nil
}

// script is all of assets/*.js in the order of their names, as one function.
func script() (template.JS, error) {
	all := "(() => {\n'use strict';\n"
	names, err := fs.Glob(assets, "assets/*.js")
	for _, name := range names {
		data, noFile := assets.ReadFile(name)
		all, err = all+string(data), errors.Join(err, noFile)
	}
	return template.JS(all + "})();\n"), err
}

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

func (p Page) Charts() (out []Chart) {
	for _, column := range p.Columns() {
		out = append(out, charts(" on "+column, slices.DeleteFunc(slices.Clone(p.Runs), func(r Run) bool { return r.Column != column }))...)
	}
	return out
}

func (r Run) Charts() []Chart { return charts("", []Run{r}) }

// distribution is latencies and the bounds that they are judged by. Scenarios may have bounds of their own, so what is drawn is the
// share of the bound.
type distribution struct {
	shares          []float64
	samples, bounds []time.Duration
}

func (d *distribution) add(samples []time.Duration, bound time.Duration) {
	if bound <= 0 {
		return
	}
	for _, s := range samples {
		d.shares, d.samples, d.bounds = append(d.shares, float64(s)/float64(bound)), append(d.samples, s), append(d.bounds, bound)
	}
}

// charts are those of some runs, by what was measured.
func charts(suffix string, runs []Run) (out []Chart) {
	var detection, recovery distribution
	for _, r := range runs {
		if r.Verdict != nil {
			detection.add(r.Verdict.Detection.Samples, r.Verdict.Detection.Bound)
			recovery.add(r.Verdict.Recovery.Samples, r.Verdict.Recovery.Bound)
		}
	}
	return append(detection.charts("Detection"+suffix), recovery.charts("Recovery"+suffix)...)
}

// Measures of a chart, as in the template.
const (
	chartWidth           = 540.0
	chartBase, chartStep = 66.0, 5.0
	chartBins            = 90
)

// Chart is one dot for each latency on a scale that ends a little after the bound, stacked where they are alike.
type Chart struct {
	Title, Bound string
	// Places on the scale.
	One, OneText, Median, MedianText px
	Dots                             []Dot
}

type Dot struct {
	X, Y px
	Late bool
}

type px float64

func (p px) String() string { return fmt.Sprintf("%.1f", float64(p)) }

// charts is one chart, or none if nothing was measured.
func (d *distribution) charts(title string) []Chart {
	if len(d.shares) == 0 {
		return nil
	}
	unit := px(chartWidth / max(1.15, slices.Max(d.shares)*1.05))
	median := px(middle(d.shares)) * unit
	return []Chart{{title + ": " + d.words(), d.boundText(), unit, min(unit, chartWidth-50), median, min(max(median, 20), unit-70), d.dots(unit)}}
}

// dots stacks the latencies; a stack that would leave the chart is drawn closer.
func (d *distribution) dots(unit px) (dots []Dot) {
	stacks := map[int][]float64{}
	tallest := 0
	for _, share := range d.shares {
		bin := int(px(share) * unit / chartWidth * chartBins)
		stacks[bin] = append(stacks[bin], share)
		tallest = max(tallest, len(stacks[bin]))
	}
	step := min(chartStep, (chartBase-16)/float64(tallest))
	for bin := range chartBins + 1 {
		for n, share := range stacks[bin] {
			dots = append(dots, Dot{px(share) * unit, px(chartBase - float64(n)*step), share > 1})
		}
	}
	return dots
}

func middle[T cmp.Ordered](all []T) T { return slices.Sorted(slices.Values(all))[(len(all)-1)/2] }

func (d *distribution) words() string {
	return fmt.Sprintf("%d measured, min %s, median %s, max %s, bound %s", len(d.samples), seconds(slices.Min(d.samples)), seconds(middle(d.samples)), seconds(slices.Max(d.samples)), d.boundText())
}

func (d *distribution) boundText() string {
	least, most := slices.Min(d.bounds), slices.Max(d.bounds)
	if least == most {
		return seconds(most)
	}
	return seconds(least) + " to " + seconds(most)
}
