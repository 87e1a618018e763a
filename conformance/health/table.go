package health

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/kmsharness/kmsharness/conformance"
)

// maxEvidence bounds the evidence in a line of the table, in characters; the report has all of it.
const maxEvidence = 300

// Table writes one line for each promise: whether it was held or broken, and the evidence.
func Table(w io.Writer, r *conformance.Report) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "PROMISE\tRESULT\tEVIDENCE")
	for i := range r.Results {
		x := &r.Results[i]
		fmt.Fprintf(t, "%s (%s)\t%s\t%s\n", x.Title, x.ID, word(x.Outcome), shortened(grounds(x)))
	}
	return t.Flush()
}

func word(o conformance.Outcome) string {
	switch o {
	case conformance.Passed:
		return "held"
	case conformance.Failed:
		return "BROKEN"
	}
	return string(o)
}

// grounds are why a result is what it is.
func grounds(r *conformance.Result) string {
	switch {
	case r.Evidence != nil:
		return r.Evidence.Response
	case r.Reason != "":
		return r.Reason
	}
	return strings.Join(r.Measured, ", ")
}

// shortened is a text on one line of bounded length.
func shortened(text string) string {
	runes := []rune(strings.Join(strings.Fields(text), " "))
	if len(runes) <= maxEvidence {
		return string(runes)
	}
	return string(runes[:maxEvidence]) + "…"
}
