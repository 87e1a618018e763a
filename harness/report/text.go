package report

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/result"
)

// WriteText writes what a person reads at the end: a table, each failure in full, and the last line.
func (s Summary) WriteText(w io.Writer) error {
	var b strings.Builder
	s.table(&b)
	for _, r := range s.sorted() {
		if r.Status != result.Passed || r.JudgedAgain || len(r.Notes)+len(r.House) > 0 {
			b.WriteString("\n" + r.Text())
		}
	}
	if s.ran()+s.Count(result.Interrupted) == 0 {
		b.WriteString("\nNo scenario ran: that is a failure. Look at the selection of files or labels and at what the backend supports.\n")
	}
	if waits := s.WaitsText(); waits != "" {
		b.WriteString("\n" + waits + "\n")
	}
	b.WriteString("\n" + s.bootedTwice() + s.Line() + "\n")
	_, err := io.WriteString(w, contract.SafeLines(b.String(), maxReproduced)) // names and texts of a result are anybody's
	return err
}

func (s Summary) table(b *strings.Builder) {
	tab := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	forms := slices.ContainsFunc(s.Results, result.Result.OtherForm)
	form := func(text string) string {
		if !forms {
			return ""
		}
		return text + "\t"
	}
	fmt.Fprintln(tab, "AREA\tSCENARIO\t"+form("FORM")+"RESULT\tTIME\tJUDGED")
	for _, r := range s.sorted() {
		fmt.Fprintf(tab, "%s\t%s\t%s%s\t%s\t%s\n", r.Area, r.Scenario, form(r.Form), r.StatusText(), round(r.Took), judgedText(r))
	}
	tab.Flush()
}

func judgedText(r result.Result) string {
	if r.Expectations+r.Checks == 0 {
		return "-"
	}
	return fmt.Sprintf("%d expectations, %d checks", r.Expectations, r.Checks)
}
