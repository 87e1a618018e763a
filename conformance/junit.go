package conformance

import (
	"fmt"
	"io"
	"strings"

	"github.com/kmsharness/kmsharness/internal/junit"
)

// WriteJUnit writes the report as one JUnit suite, a case for each check. A blocked check is a failure: it showed nothing.
func (r *Report) WriteJUnit(w io.Writer) error {
	var doc junit.Suites
	suite := "kmsharness.conformance." + r.Suite
	for _, result := range r.Results {
		c := junit.Case{Class: suite + "." + string(result.Profile), Name: result.ID, Time: junit.Seconds(result.Duration)}
		switch result.Outcome {
		case Failed, Blocked:
			var text strings.Builder
			for _, l := range result.Lines() {
				fmt.Fprintf(&text, "%s: %s\n", l.Label, l.Text)
			}
			c.Failure = &junit.Problem{Message: result.Rule, Text: text.String()}
			if result.Outcome == Blocked {
				c.Failure.Message = "blocked: " + result.Reason
			}
		case NotSupported, Skipped, Inconclusive:
			c.Skipped = &junit.Problem{Message: string(result.Outcome) + ": " + result.Reason}
		}
		doc.Add(suite, c)
	}
	return doc.Write(w)
}
