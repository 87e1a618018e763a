package page

import (
	"fmt"
	"html/template"
	"slices"
	"strings"
	"time"
)

// distribution is latencies and the bounds that they are judged by. Scenarios may have bounds of their own, so what is drawn is the
// share of the bound.
type distribution struct {
	shares  []float64
	samples []time.Duration
	bounds  []time.Duration
}

func (d *distribution) add(samples []time.Duration, bound time.Duration) {
	if bound <= 0 {
		return
	}
	for _, s := range samples {
		d.shares, d.samples, d.bounds = append(d.shares, float64(s)/float64(bound)), append(d.samples, s), append(d.bounds, bound)
	}
}

// Measures of a chart.
const (
	chartWidth, chartHeight = 560.0, 92.0
	chartLeft, chartRight   = 10.0, 10.0
	chartBase, chartStep    = 66.0, 5.0
	chartBins               = 90
)

// chart is one dot for each latency on a scale that ends a little after the bound, stacked where they are alike; nothing if nothing
// was measured.
func (d *distribution) chart(title string) []template.HTML {
	if len(d.shares) == 0 {
		return nil
	}
	scale := max(1.15, slices.Max(d.shares)*1.05)
	x := func(share float64) float64 {
		return chartLeft + share/scale*(chartWidth-chartLeft-chartRight)
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<figure><figcaption>%s</figcaption><svg class="chart" viewBox="0 0 %g %g" role="img" aria-label="%s">`,
		template.HTMLEscapeString(title+": "+d.words()), chartWidth, chartHeight, template.HTMLEscapeString(title+": "+d.words()))
	fmt.Fprintf(&b, `<rect class="allowed" x="%.1f" y="12" width="%.1f" height="%.1f"/>`, x(0), x(1)-x(0), chartBase-8)
	d.dots(&b, x, scale)
	median := middle(d.shares)
	fmt.Fprintf(&b, `<line class="median" x1="%.1f" x2="%.1f" y1="10" y2="%.1f"/><line class="bound" x1="%.1f" x2="%.1f" y1="6" y2="%.1f"/>`,
		x(median), x(median), chartBase+6, x(1), x(1), chartBase+6)
	fmt.Fprintf(&b, `<text x="%.1f" y="%.1f">0</text><text x="%.1f" y="%.1f" text-anchor="middle">bound %s</text><text x="%.1f" y="%.1f" text-anchor="middle">median</text></svg></figure>`,
		x(0), chartHeight-8, min(x(1), chartWidth-40), chartHeight-8, template.HTMLEscapeString(d.boundText()), min(max(x(median), 30), x(1)-70), chartHeight-8)
	return []template.HTML{template.HTML(b.String())}
}

// dots stacks the latencies; a stack that would leave the chart is drawn closer.
func (d *distribution) dots(b *strings.Builder, x func(float64) float64, scale float64) {
	stacks := map[int][]float64{}
	tallest := 0
	for _, share := range d.shares {
		bin := int(share / scale * chartBins)
		stacks[bin] = append(stacks[bin], share)
		tallest = max(tallest, len(stacks[bin]))
	}
	step := min(chartStep, (chartBase-16)/float64(tallest))
	for bin := range chartBins + 1 {
		for n, share := range stacks[bin] {
			class := "dot"
			if share > 1 {
				class = "dot late"
			}
			fmt.Fprintf(b, `<circle class="%s" cx="%.1f" cy="%.1f" r="2.6"/>`, class, x(share), chartBase-float64(n)*step)
		}
	}
}

func middle(shares []float64) float64 {
	sorted := slices.Sorted(slices.Values(shares))
	return sorted[(len(sorted)-1)/2]
}

func (d *distribution) words() string {
	sorted := slices.Sorted(slices.Values(d.samples))
	return fmt.Sprintf("%d measured, min %s, median %s, max %s, bound %s", len(sorted), seconds(sorted[0]), seconds(sorted[(len(sorted)-1)/2]), seconds(sorted[len(sorted)-1]), d.boundText())
}

func (d *distribution) boundText() string {
	least, most := slices.Min(d.bounds), slices.Max(d.bounds)
	if least == most {
		return seconds(most)
	}
	return seconds(least) + " to " + seconds(most)
}
