package conformance

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/kmsharness/kmsharness/internal/text"
)

// Line is a result on one line, for progress.
func (r Result) Line() string {
	text := fmt.Sprintf("%-13s  %s  %s", r.Outcome, r.ID, r.Title)
	if r.Outcome == Passed && len(r.Measured) > 0 {
		text += " (" + strings.Join(r.Measured, ", ") + ")"
	}
	return text
}

// Print writes the end of a run for a terminal: first what failed with its evidence, then a table of the profiles.
func (r *Report) Print(w io.Writer) {
	for _, f := range r.With(Failed) {
		fmt.Fprintf(w, "\n✗ %s (%s): %s\n", f.ID, f.Profile, f.Rule)
		for _, line := range f.Lines() {
			fmt.Fprintf(w, "    %-12s %s\n", line.Label+":", strings.ReplaceAll(line.Text, "\n", "\n                 "))
		}
	}
	for _, o := range []Outcome{Inconclusive, Blocked, Skipped} {
		for _, s := range r.With(o) {
			fmt.Fprintf(w, "\n- %s (%s): %s: %s\n", s.ID, s.Profile, o, s.Reason)
		}
	}
	var reasons []string
	ids := map[string][]string{} // by reason
	for _, s := range r.With(NotSupported) {
		if ids[s.Reason] == nil {
			reasons = append(reasons, s.Reason)
		}
		ids[s.Reason] = append(ids[s.Reason], s.ID)
	}
	if len(reasons) > 0 {
		fmt.Fprintln(w)
	}
	for _, reason := range reasons {
		fmt.Fprintf(w, "not supported: %s: %s\n", reason, few(ids[reason]))
	}
	fmt.Fprintln(w)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "PROFILE\tRESULT\tPASSED\tFAILED\tNOT SUPPORTED\tSKIPPED\tBLOCKED")
	for _, p := range r.Profiles {
		fmt.Fprintf(t, "%s\t%s\t%d\t%d\t%d\t%d\t%d\n", p.Profile, p.Verdict(), p.Passed, p.Failed, p.NotSupported, p.Skipped, p.Blocked)
	}
	_ = t.Flush() // to w, whose errors a terminal does not have
}

// few names up to three checks, and counts more.
func few(ids []string) string {
	if len(ids) <= 3 {
		return strings.Join(ids, ", ")
	}
	return text.Count(len(ids), "check")
}

// Line is a part of what a failed result says of itself.
type Line struct{ Label, Text string }

// Lines is what a failed result says of itself, in the order in which it is read.
func (r Result) Lines() (lines []Line) {
	add := func(label, text string) {
		if text != "" {
			lines = append(lines, Line{label, text})
		}
	}
	if e := r.Evidence; e != nil {
		add("request", e.Request)
		add("response", e.Response)
		add("expected", e.Expected)
	}
	if r.Runs > 0 {
		add("runs", fmt.Sprintf("failed in %d of %d", r.FailedRuns, r.Runs))
	}
	add("consequence", r.Consequence)
	add("source", r.Source)
	add("measured", strings.Join(r.Measured, ", "))
	return lines
}
