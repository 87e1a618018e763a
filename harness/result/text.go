package result

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/internal/text"
)

// Text is what is shown of a scenario that did not pass, or that has notes; the whole verdict is in its directory.
func (r Result) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s on %s in %s\n  %s\n", r.Scenario, strings.ToUpper(string(r.Status)), r.On(), text.Tenths(r.Took), r.Title)
	for _, reason := range r.Reasons {
		b.WriteString("  " + Indent(reason) + "\n")
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
		b.WriteString("  note: " + Indent(note) + "\n")
	}
	if r.Reproduce != "" && r.Status != Passed && !r.Status.Skipped() {
		fmt.Fprintf(&b, "  reproduce: %s\n", r.Reproduce)
	}
	if r.Dir != "" && !r.Status.Skipped() {
		fmt.Fprintf(&b, "  artifacts: %s\n", r.Dir)
	}
	if r.JudgedAgain {
		fmt.Fprintf(&b, "  judged again alone; the first try was inconclusive: %s\n", filepath.Join(r.Dir, FirstTryDir))
	}
	return b.String()
}

func (r Result) failure(b *strings.Builder, f Failure) {
	head := "  ✗ " + f.Code()
	if slices.ContainsFunc(r.House, func(h Failure) bool { return h.ID == f.ID && h.At.Equal(f.At) }) {
		head = "  ○ " + f.Code()
	}
	if f.Because != "" {
		head = "    ↳ " + f.Code()
	}
	if f.Where != "" {
		head += " " + f.Where
	}
	fmt.Fprintf(b, "%s%s\n      seen:    %s\n", head, f.When(), Indent(f.Seen))
	if f.Because != "" { // folded: what is allowed is in verdict.txt
		fmt.Fprintf(b, "      because: %s\n", f.Because)
	} else if f.Allowed != "" {
		fmt.Fprintf(b, "      allowed: %s\n", Indent(f.Allowed))
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

// Indent keeps a text of several lines below its first, and each line safe for a terminal: plugins may say anything.
func Indent(s string) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	for i, line := range lines {
		lines[i] = contract.SafeText(line, maxLineChars)
	}
	return strings.Join(lines, "\n               ")
}
