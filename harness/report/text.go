package report

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/kmsharness/kmsharness/contract"
)

// WriteText writes what a person reads at the end: a table, each failure in full, and the last line.
func (s Summary) WriteText(w io.Writer) error {
	var b strings.Builder
	s.table(&b)
	for _, r := range s.sorted() {
		if r.Status != Passed || r.JudgedAgain || len(r.Notes)+len(r.House) > 0 {
			b.WriteString("\n" + r.Text())
		}
	}
	if s.ran()+s.Count(Interrupted) == 0 {
		b.WriteString("\nNo scenario ran: that is a failure. Look at the selection of files or labels and at what the backend supports.\n")
	}
	if waits := s.WaitsText(); waits != "" {
		b.WriteString("\n" + waits + "\n")
	}
	b.WriteString("\n" + s.bootedTwice() + s.Line() + "\n")
	_, err := io.WriteString(w, b.String())
	return err
}

func (s Summary) table(b *strings.Builder) {
	tab := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	forms := slices.ContainsFunc(s.Results, Result.OtherForm)
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

func judgedText(r Result) string {
	if r.Expectations+r.Checks == 0 {
		return "-"
	}
	return fmt.Sprintf("%d expectations, %d checks", r.Expectations, r.Checks)
}

// Text is what is shown of a scenario that did not pass, or that has notes; the whole verdict is in its directory.
func (r Result) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s on %s in %s\n  %s\n", r.Scenario, strings.ToUpper(string(r.Status)), r.On(), round(r.Took), r.Title)
	for _, reason := range r.Reasons {
		b.WriteString("  " + indent(reason) + "\n")
	}
	for _, f := range r.Failures {
		r.failure(&b, f)
	}
	if len(r.House) > 0 {
		b.WriteString("  house rules that are not kept, which no source demands (--strict makes them failures):\n")
	}
	for _, f := range r.House {
		r.failure(&b, f)
	}
	for _, note := range r.Notes {
		b.WriteString("  note: " + indent(note) + "\n")
	}
	if r.Reproduce != "" && r.Status != Passed && !r.Status.skipped() {
		fmt.Fprintf(&b, "  reproduce: %s\n", r.Reproduce)
	}
	if r.Dir != "" && !r.Status.skipped() {
		fmt.Fprintf(&b, "  artifacts: %s\n", r.Dir)
	}
	if r.JudgedAgain {
		fmt.Fprintf(&b, "  judged again alone; the first try was inconclusive: %s\n", filepath.Join(r.Dir, FirstTryDir))
	}
	return b.String()
}

func (r Result) failure(b *strings.Builder, f Failure) {
	head := "  ✗ " + f.ID
	if slices.ContainsFunc(r.House, func(h Failure) bool { return h.ID == f.ID && h.At.Equal(f.At) }) {
		head = "  ○ " + f.ID
	}
	if f.Where != "" {
		head += " " + f.Where
	}
	if !f.At.IsZero() {
		head += fmt.Sprintf(" at +%.3fs (%s)", f.Offset.Seconds(), f.At.UTC().Format("15:04:05.000Z"))
	}
	fmt.Fprintf(b, "%s\n      seen:    %s\n", head, indent(f.Seen))
	if f.Allowed != "" {
		fmt.Fprintf(b, "      allowed: %s\n", indent(f.Allowed))
	}
	if f.Because != "" {
		fmt.Fprintf(b, "      because: %s\n", f.Because)
	}
	if f.House != "" {
		fmt.Fprintf(b, "      rule:    %s\n", f.House)
	}
	if len(f.Repeated) > 0 {
		fmt.Fprintf(b, "      and again: %s\n", strings.Join(f.Repeated, ", "))
	}
	if f.More > 0 {
		fmt.Fprintf(b, "      and %d more of %s in the history\n", f.More, f.ID)
	}
}

// maxLineChars bounds one line of a text that came from outside.
const maxLineChars = 4096

// indent keeps a text of several lines below its first, and each line safe for a terminal: plugins may say anything.
func indent(s string) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	for i, line := range lines {
		lines[i] = contract.SafeText(line, maxLineChars)
	}
	return strings.Join(lines, "\n               ")
}
