package page

import (
	"cmp"
	"fmt"
	"slices"
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
