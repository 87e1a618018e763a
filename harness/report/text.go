package report

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/result"
	"github.com/kmsharness/kmsharness/internal/text"
)

// WriteText writes what a person reads at the end: a table, each failure in full, and the last line.
func (s Summary) WriteText(w io.Writer) error {
	var b strings.Builder
	results := s.sorted()
	table(&b, results)
	for _, r := range results {
		if r.Status == result.NotBegun { // the table has its name, and all have one of two reasons
			continue
		}
		if r.Status != result.Passed || r.JudgedAgain || len(r.Notes)+len(r.House) > 0 {
			b.WriteString("\n" + r.Text())
		}
	}
	for _, text := range append(notBegun(results), s.nothingJudged(), s.WaitsText()) {
		if text != "" {
			b.WriteString("\n" + text + "\n")
		}
	}
	b.WriteString("\n" + s.bootedTwice() + s.Line() + "\n")
	_, err := io.WriteString(w, contract.SafeLines(b.String(), maxReproduced)) // names and texts of a result are anybody's
	return err
}

func table(b *strings.Builder, results []result.Result) {
	tab := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	forms := slices.ContainsFunc(results, result.Result.OtherForm)
	form := func(text string) string {
		if !forms {
			return ""
		}
		return text + "\t"
	}
	fmt.Fprintln(tab, "AREA\tSCENARIO\t"+form("FORM")+"RESULT\tTIME\tJUDGED")
	for _, r := range results {
		fmt.Fprintf(tab, "%s\t%s\t%s%s\t%s\t%s\n", r.Area, r.Scenario, form(r.Form), r.StatusText(), text.Tenths(r.Took), judgedText(r))
	}
	tab.Flush()
}

func judgedText(r result.Result) string {
	if r.Expectations+r.Checks == 0 {
		return "-"
	}
	return fmt.Sprintf("%d expectations, %d checks", r.Expectations, r.Checks)
}

// notBegun is a line for each reason why scenarios were not begun, with their names.
func notBegun(results []result.Result) (all []string) {
	var reasons []string
	names := map[string][]string{}
	for _, r := range results {
		if r.Status == result.NotBegun {
			reason := result.Indent(strings.Join(r.Reasons, "; "))
			if names[reason] == nil {
				reasons = append(reasons, reason)
			}
			names[reason] = append(names[reason], r.Scenario)
		}
	}
	for _, reason := range reasons {
		all = append(all, fmt.Sprintf("not begun, because %s: %s", reason, strings.Join(names[reason], ", ")))
	}
	return all
}
