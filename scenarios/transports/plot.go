package main

import (
	"fmt"
	"html"
	"slices"
	"strings"
)

// Measures of a plot.
const (
	plotWidth, plotLeft, plotTop, barHeight, groupGap = 900.0, 330.0, 46.0, 12.0, 10.0
)

// colours of the ways, in their order; they can be told apart without colour vision.
func colours() []string { return []string{"#0072b2", "#e69f00", "#009e73", "#cc79a7", "#666666"} }

// plot draws rows as groups of bars, one for each way. Rows without a value are left out; nothing remains: an empty text.
func (t *table) plot(title, unit string, wanted func(row) bool) string {
	var rows []row
	most := 0.0
	for _, r := range t.rows {
		if !wanted(r) || !slices.ContainsFunc(t.ways, func(way string) bool { return r.cells[way].value > 0 }) {
			continue
		}
		rows = append(rows, r)
		for _, c := range r.cells {
			most = max(most, c.value)
		}
	}
	if len(rows) == 0 {
		return ""
	}
	group := barHeight*float64(len(t.ways)) + groupGap
	height := plotTop + group*float64(len(rows)) + 10
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %g %g" font-family="sans-serif" font-size="11" role="img" aria-label="%s">`, plotWidth, height, html.EscapeString(title))
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" fill="white"/><text x="10" y="16" font-size="13">%s</text>`, html.EscapeString(title))
	for i, way := range t.ways {
		x := 10 + float64(i)*110
		fmt.Fprintf(&b, `<rect x="%g" y="24" width="10" height="10" fill="%s"/><text x="%g" y="33">%s</text>`, x, colours()[i%len(colours())], x+14, html.EscapeString(way))
	}
	for n, r := range rows {
		y := plotTop + group*float64(n)
		fmt.Fprintf(&b, `<text x="%g" y="%g" text-anchor="end">%s</text>`, plotLeft-8, y+group/2, html.EscapeString(fmt.Sprintf("%d nodes, %s: %s", r.nodes, r.form, r.what)))
		for i, way := range t.ways {
			v := r.cells[way].value
			top := y + float64(i)*barHeight
			width := v / most * (plotWidth - plotLeft - 90)
			fmt.Fprintf(&b, `<rect x="%g" y="%.1f" width="%.1f" height="%g" fill="%s"/><text x="%.1f" y="%.1f">%.4g %s</text>`,
				plotLeft, top, width, barHeight-2, colours()[i%len(colours())], plotLeft+width+4, top+barHeight-3, v, html.EscapeString(unit))
		}
	}
	b.WriteString("</svg>\n")
	return b.String()
}
