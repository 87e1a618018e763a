package health

import (
	"fmt"
	"strings"

	"github.com/kmsharness/kmsharness/conformance"
	"github.com/kmsharness/kmsharness/internal/printer"
)

// Table has a row for each promise: whether it was held or broken, and the evidence.
func Table(r *conformance.Report) printer.Table {
	t := printer.Table{Columns: []string{"PROMISE", "RESULT", "EVIDENCE"}}
	for i := range r.Results {
		x := &r.Results[i]
		t.Rows = append(t.Rows, []string{fmt.Sprintf("%s (%s)", x.Title, x.ID), word(x.Outcome), strings.Join(strings.Fields(grounds(x)), " ")})
	}
	return t
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
