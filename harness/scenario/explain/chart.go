package explain

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/kmsharness/kmsharness/internal/text"
)

// chartWidth is the columns of the chart; with the number of the step a line has 80.
const chartWidth = 72

// Marks of the chart.
const (
	markAction = '●' // it happens
	markForce  = '━' // what it did is in force
	markExpect = '▒' // it may become true at any time in here
	markHolds  = '█' // it is true, or false, all the time
	markWait   = '·'
	markGroup  = '─'
)

// Write prints the rows in words, one step a line, and then a chart of their times.
func Write(w io.Writer, rows []Row) error {
	var end time.Duration
	for _, r := range rows {
		end = max(end, r.End.Latest, r.Lasts)
	}
	for i, r := range rows {
		fmt.Fprintf(w, "%3d  %-12s %s%s\n", i+1, times(r.Begin), strings.Repeat("  ", r.Depth), r.Text)
	}
	fmt.Fprintf(w, "\n     %s\n", axis(end))
	for i, r := range rows {
		fmt.Fprintf(w, "%3d  %s\n", i+1, bar(r, end))
	}
	_, err := fmt.Fprintf(w, "\n%c happens  %c in force  %c becomes true in here  %c all the time  %c waits\nThe times are the earliest and the latest; how long an action takes is not known before.\n",
		markAction, markForce, markExpect, markHolds, markWait)
	return err
}

// times is "3.6s", or "0s…3.6s" if it depends on the steps before.
func times(s Span) string {
	if s.Earliest == s.Latest {
		return text.Tenths(s.Earliest).String()
	}
	return fmt.Sprintf("%v…%v", text.Tenths(s.Earliest), text.Tenths(s.Latest))
}

func axis(end time.Duration) string {
	right := text.Tenths(end).String()
	return "0" + strings.Repeat(" ", max(1, chartWidth-1-len(right))) + right
}

// bar draws a row over the whole time.
func bar(r Row, end time.Duration) string {
	line := []rune(strings.Repeat(" ", chartWidth))
	fill := func(from, to time.Duration, mark rune) {
		for i := column(from, end); i <= column(to, end); i++ {
			line[i] = mark
		}
	}
	if mark, lasts := map[Kind]rune{Expect: markExpect, Holds: markHolds, Wait: markWait, Group: markGroup}[r.Kind]; lasts {
		fill(r.Begin.Earliest, r.End.Latest, mark)
	} else {
		if r.Lasts > 0 {
			fill(r.Begin.Earliest, r.Lasts, markForce)
		}
		line[column(r.Begin.Earliest, end)] = markAction
	}
	return strings.TrimRight(string(line), " ")
}

func column(at, end time.Duration) int {
	if end <= 0 {
		return 0
	}
	return min(chartWidth-1, int(float64(at)/float64(end)*float64(chartWidth)))
}
