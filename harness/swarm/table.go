package swarm

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/kmsharness/kmsharness/harness/check"
)

// hole stands for a pair that no seed reached.
const hole = "·"

// Write prints what failed, how often each invariant was judged, alone and under each kind of fault, and the numbers.
func (s *Summary) Write(w io.Writer) error {
	var b strings.Builder
	for _, f := range s.Failed {
		f.write(&b)
	}
	s.invariantTable(&b)
	s.pairTable(&b)
	speed := s.VirtualSeconds / max(s.WallSeconds, 1e-3)
	fmt.Fprintf(&b, "\nsimulate: %d of %d seeds passed; %v of virtual time in %v (%.0f times real time), %d events, histories %s\n",
		s.Passed, s.Seeds, seconds(s.VirtualSeconds).Round(time.Second), seconds(s.WallSeconds).Round(100*time.Millisecond), speed, s.Events, s.Hash)
	if missing := s.Missing(); len(missing) > 0 {
		fmt.Fprintf(&b, "not simulated: seeds %s\n", keywords(missing))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

func (f Failed) write(b *strings.Builder) {
	text := f.text
	if text == "" { // of another process
		text = fmt.Sprintf("seed %d: %s: %s\n  reproduce: %s\n", f.Seed, f.Status, strings.Join(f.Violated, ", "), f.Reproduce)
	}
	b.WriteString("\n" + text)
	if f.Scenario != "" {
		fmt.Fprintf(b, "  scenario:  %s\n", f.Scenario)
	}
	if f.Shrunk != "" {
		fmt.Fprintf(b, "  shrunk:    %s (%d steps)\n", f.Shrunk, f.Steps)
	}
}

func (s *Summary) invariantTable(b *strings.Builder) {
	t := tabwriter.NewWriter(b, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "\nINVARIANT\tSEEDS\tJUDGED\tVIOLATED")
	for _, i := range check.Invariants() {
		c := s.Invariants[i.ID]
		note := ""
		if c.Seeds == 0 {
			note = "\tno seed reached it"
		}
		fmt.Fprintf(t, "%s\t%d\t%d\t%d%s\n", i.ID, c.Seeds, c.Judged, c.Violated, note)
	}
	t.Flush() // a builder does not fail
}

// pairTable is by kind of fault and invariant. NOTHING-RAN is left out: it is about the run as a whole.
func (s *Summary) pairTable(b *strings.Builder) {
	var ids []string
	for _, i := range check.Invariants() {
		if i.ID != "NOTHING-RAN" {
			ids = append(ids, i.ID)
		}
	}
	t := tabwriter.NewWriter(b, 0, 8, 1, ' ', tabwriter.AlignRight)
	holes, width := 0, 0
	for kind := range s.Faults {
		width = max(width, len(kind))
	}
	fmt.Fprintf(t, "\n%-*s\tSEEDS", width, "FAULT")
	for _, id := range ids {
		fmt.Fprint(t, "\t"+shortID(id))
	}
	fmt.Fprintln(t, "\t")
	for _, kind := range slices.Sorted(maps.Keys(s.Faults)) {
		fmt.Fprintf(t, "%-*s\t%d", width, kind, s.Faults[kind])
		for _, id := range ids {
			n := s.Pairs[kind][id].Judged
			if n == 0 {
				holes++
			}
			fmt.Fprint(t, "\t"+compact(n))
		}
		fmt.Fprintln(t, "\t")
	}
	t.Flush()
	fmt.Fprintf(b, "How often an invariant was judged while a fault was in force, or shortly after. No seed reached %d of %d pairs (%s).\n",
		holes, len(ids)*len(s.Faults), hole)
	var legend []string
	for _, id := range ids {
		legend = append(legend, shortID(id)+" "+id)
	}
	for part := range slices.Chunk(legend, 7) {
		b.WriteString("  " + strings.Join(part, ", ") + "\n")
	}
}

// shortID is the head of a narrow column: the first letters of several words, or three of one.
func shortID(id string) string {
	keywords := strings.Split(id, "-")
	if len(keywords) == 1 {
		return id[:min(3, len(id))]
	}
	short := ""
	for _, w := range keywords {
		short += w[:1]
	}
	return short[:min(3, len(short))]
}

func compact(n int) string {
	switch {
	case n == 0:
		return hole
	case n < 10_000:
		return fmt.Sprint(n)
	case n < 10_000_000:
		return fmt.Sprintf("%dk", n/1000)
	default:
		return fmt.Sprintf("%dM", n/1_000_000)
	}
}
