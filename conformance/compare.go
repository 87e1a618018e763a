package conformance

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

// Compare writes a matrix of reports of one suite: a row for each check whose outcome is not the same everywhere (with all: for each check), a
// column for each report. It reports whether all outcomes are equal.
func Compare(w io.Writer, reports []*Report, all bool) (equal bool, err error) {
	for _, r := range reports {
		if r.Suite != reports[0].Suite {
			return false, fmt.Errorf("compare %s with %s: the reports are of the suites %s and %s: expected one suite", reports[0].Implementation.Name, r.Implementation.Name, reports[0].Suite, r.Suite)
		}
	}
	var ids []string
	outcomes := make([]map[string]Outcome, len(reports))
	for i, r := range reports {
		outcomes[i] = map[string]Outcome{}
		for _, result := range r.Results {
			outcomes[i][result.ID] = result.Outcome
			if !slices.Contains(ids, result.ID) {
				ids = append(ids, result.ID)
			}
		}
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	header := []string{"CHECK"}
	for _, r := range reports {
		header = append(header, strings.TrimSpace(r.Implementation.Name+" "+r.Implementation.Version))
	}
	fmt.Fprintln(t, strings.Join(header, "\t"))
	equal = true
	for _, id := range ids {
		row, same := []string{id}, true
		for i := range reports {
			o, ok := outcomes[i][id]
			if !ok {
				o = "-"
			}
			row = append(row, string(o))
			same = same && string(o) == row[1]
		}
		equal = equal && same
		if all || !same {
			fmt.Fprintln(t, strings.Join(row, "\t"))
		}
	}
	for _, p := range Profiles() {
		row := []string{"profile " + string(p)}
		for _, r := range reports {
			word := "-"
			if i := slices.IndexFunc(r.Profiles, func(sum ProfileResult) bool { return sum.Profile == p }); i >= 0 {
				word = string(r.Profiles[i].Verdict())
			}
			row = append(row, word)
		}
		fmt.Fprintln(t, strings.Join(row, "\t"))
	}
	if err := t.Flush(); err != nil {
		return equal, fmt.Errorf("write the comparison: %w", err)
	}
	return equal, nil
}
