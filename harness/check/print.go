package check

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/check/text"
)

// maxPrinted bounds the violations of one invariant that Print shows.
const maxPrinted = 5

// maxLineChars bounds one line of Print.
const maxLineChars = 8192

const unnamed = "(unnamed)"

// Print writes a verdict for people: a line for every invariant, then each violation with what was seen, what was
// allowed, when, and how to run it again. The output is bounded whatever the history holds.
func Print(w io.Writer, v Verdict) error {
	var b strings.Builder
	word := string(v.Outcome)
	if v.Outcome != RunPassed {
		word = strings.ToUpper(word)
	}
	backend := cmp.Or(v.Backend, unnamed)
	if v.Plugin != "" {
		backend += " with plugin " + text.Quoted(v.Plugin)
	}
	if v.Operator != "" {
		backend += " with operator " + text.Quoted(v.Operator)
	}
	fmt.Fprintf(&b, "%s on %s: %s (%d events in %s, %d actions, %d expectations)\n\n", cmp.Or(v.Scenario, unnamed), backend, word,
		v.Events, text.Short(v.Duration), v.Actions, v.Expectations.Judged)
	printTable(&b, v)
	fmt.Fprintf(&b, "\ndetection: %s\nrecovery:  %s\n", v.Detection, v.Recovery)
	for _, x := range v.Inconclusive {
		fmt.Fprintf(&b, "\nINCONCLUSIVE %s\n", x)
	}
	printFailing(&b, v)
	if v.Starvation > 0 {
		fmt.Fprintf(&b, "\nNOTE CPU starvation: for %s of %s in total\n", text.Short(v.Starvation), text.Short(v.Duration))
	}
	for _, n := range v.Notes {
		fmt.Fprintf(&b, "\nNOTE %s\n", n)
	}
	printContainers(&b, v)
	if !v.OK && v.Reproduce != "" {
		fmt.Fprintf(&b, "\nreproduce: %s\n", v.Reproduce)
	}
	_, err := io.WriteString(w, contract.SafeLines(b.String(), maxLineChars)) // names and texts of a history are anybody's
	return err
}

func printTable(b *strings.Builder, v Verdict) {
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "INVARIANT\tSTATUS\tJUDGED\tVIOLATIONS")
	for _, r := range v.Invariants {
		note := ""
		switch {
		case r.Status == Excused:
			note = "  (" + text.Quoted(r.Excuse) + ")"
		case r.Unjudged != "" && (v.AggregatorProfile != "" || v.Observed):
			note = "  (because " + r.Unjudged + ")"
		}
		fmt.Fprintf(t, "%s\t%s\t%d\t%d%s\n", r.ID, r.Status, r.Judged, r.Count, note)
	}
	_ = t.Flush() // a strings.Builder never fails
}

// printFailing shows what failed, the cause first, and before it what is wrong with the recording.
func printFailing(b *strings.Builder, v Verdict) {
	shown := 0
	problem := func(text, because string) {
		if shown++; shown > MaxViolations {
			return
		}
		fmt.Fprintf(b, "\nPROBLEM %s\n", text)
		if because != "" {
			fmt.Fprintf(b, "  because: %s\n", because)
		}
	}
	for _, p := range v.Problems {
		if !slices.ContainsFunc(v.Failing, func(f Failing) bool { return f.problem == p }) {
			problem(p, "")
		}
	}
	for _, f := range v.Failing {
		if f.problem != "" {
			problem(f.problem, f.Because)
			continue
		}
		if i := slices.IndexFunc(v.Invariants, func(r Result) bool { return r.ID == f.ID }); i >= 0 {
			printResult(b, v.Invariants[i])
		}
	}
}

func printResult(b *strings.Builder, r Result) {
	fmt.Fprintf(b, "\n%s: %s\n  (contract: %s)\n", r.ID, r.Statement, r.Source)
	for _, x := range r.Violations[:min(len(r.Violations), maxPrinted)] {
		fmt.Fprintf(b, "  at %s", text.Short(x.Offset))
		if x.Seq > 0 {
			fmt.Fprintf(b, ", event %d", x.Seq)
		}
		for _, of := range [][2]string{{"node", x.Node}, {"keyID", x.KeyID}, {"rule", x.Rule}} {
			if of[1] != "" {
				fmt.Fprintf(b, ", %s %s", of[0], of[1])
			}
		}
		fmt.Fprintf(b, " (%s)\n    seen:    %s\n    allowed: %s\n", x.At.UTC().Format("15:04:05.000"), x.Seen, x.Allowed)
		if x.Because != "" {
			fmt.Fprintf(b, "    because: %s\n", x.Because)
		}
	}
	if more := r.Count - min(len(r.Violations), maxPrinted); more > 0 {
		fmt.Fprintf(b, "  and %d more\n", more)
	}
}

// printContainers shows what became of containers. They are texts of an engine, and safe to show.
func printContainers(b *strings.Builder, v Verdict) {
	if v.ContainerChanges == 0 {
		return
	}
	b.WriteString("\ncontainers:\n")
	for _, c := range v.Containers {
		fmt.Fprintf(b, "  at %s (%s) %s\n", text.Short(c.Offset), c.At.UTC().Format("15:04:05.000"), contract.SafeText(c.String(), text.MaxShown))
	}
	if more := v.ContainerChanges - len(v.Containers); more > 0 {
		fmt.Fprintf(b, "  and %d more in the history\n", more)
	}
}
