package diverge

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/history"
)

// Limits of what is printed.
const (
	maxText   = 400
	maxOthers = 12
)

// Print writes one picture: what both said last, then both sides.
func (r Result) Print(w io.Writer, names [2]string, sides [2][]history.Event) error {
	var b strings.Builder
	for i, side := range sides {
		fmt.Fprintf(&b, "%c: %s (%s)\n", 'A'+rune(i), names[i], headline(side))
	}
	switch r.Verdict {
	case Equal:
		b.WriteString("equal: every event is the same\n")
	case TimesOnly:
		b.WriteString("equal but for times: the same was said in the same order\n")
	default:
		r.First.print(&b)
		r.others(&b)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func headline(events []history.Event) string {
	if len(events) == 0 || events[0].Run == nil {
		return "no heading"
	}
	run := events[0].Run
	return fmt.Sprintf("%s on %s, seed %d, %d events", run.Scenario, run.Backend, run.Seed, len(events))
}

func (d *Divergence) print(b *strings.Builder) {
	fmt.Fprintf(b, "\nfirst divergence: %s\n\n", d.Strand)
	tab := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tab, "\t\tAT\tEVENT\tWHAT")
	for side := range 2 {
		fmt.Fprintf(tab, "%s\t%c\t%s\n", label(side, "last common"), 'A'+rune(side), d.Common[side].line("nothing before"))
	}
	for side := range 2 {
		fmt.Fprintf(tab, "%s\t%c\t%s\n", label(side, "then"), 'A'+rune(side), d.Then[side].line("nothing more"))
	}
	tab.Flush()
	for side, text := range d.During {
		fmt.Fprintf(b, "%s  %c  after %s\n", label(side, "\nstep"), 'A'+rune(side), contract.SafeText(text, maxText))
	}
}

func label(side int, text string) string {
	if side == 0 {
		return text
	}
	return strings.Repeat(" ", len(strings.TrimPrefix(text, "\n")))
}

func (s *Saying) line(nothing string) string {
	if s == nil {
		return "-\t-\t" + nothing
	}
	return fmt.Sprintf("%+.3fs\t%d\t%s", s.Offset.Seconds(), s.Event.Seq, contract.SafeText(s.Text, maxText))
}

func (r Result) others(b *strings.Builder) {
	if len(r.Others) == 0 {
		return
	}
	shown := r.Others[:min(len(r.Others), maxOthers)]
	fmt.Fprintf(b, "\nlater, these differ, too: %s", strings.Join(shown, "; "))
	if more := len(r.Others) - len(shown); more > 0 {
		fmt.Fprintf(b, "; and %d more", more)
	}
	b.WriteString("\n")
}
