package report

import (
	"io"
	"strings"

	"github.com/kmsharness/kmsharness/harness/result"
	"github.com/kmsharness/kmsharness/internal/junit"

	"github.com/kmsharness/kmsharness/contract"
)

// ClassPrefix begins the class name of a test case; the area follows. Names are the same on every run and backend.
const ClassPrefix = "kmsharness."

const maxJUnitText = 16 << 10

// WriteJUnit writes all results as one JUnit file with one suite per area. A run without any scenario has one failed
// case, so that no consumer takes the empty file for a pass.
func (s Summary) WriteJUnit(w io.Writer) error {
	var doc junit.Suites
	for _, r := range s.Sorted() {
		c := caseOf(r)
		doc.Add(c.Class, c)
	}
	if len(s.Results) == 0 {
		class := ClassPrefix + "run"
		nothing := &junit.Problem{Message: "no scenario ran", Text: "expected at least one"}
		doc.Add(class, junit.Case{Class: class, Name: "at-least-one-scenario-ran", Failure: nothing})
	}
	doc.Time = junit.Seconds(s.Took)
	return doc.Write(w)
}

func caseOf(r result.Result) junit.Case {
	c := junit.Case{Class: ClassPrefix + r.Area, Name: r.Scenario, Time: junit.Seconds(r.Took)}
	if r.Form != "" {
		c.Properties = []junit.Property{{Name: "form", Value: r.Form}}
	}
	p := &junit.Problem{Message: contract.SafeLines(headline(r), 512), Text: contract.SafeLines(r.Text(), maxJUnitText)}
	switch r.Status {
	case result.Failed:
		c.Failure = p
	case result.CouldNotRun:
		c.Error = p
	case result.Inconclusive: // consumers that know no types read the message
		p.Type, p.Message = string(r.Status), string(r.Status)+": "+p.Message
		c.Error = p
	case result.NotSupported, result.NotBegun, result.Interrupted:
		c.Skipped = p
	}
	return c
}

func headline(r result.Result) string {
	switch {
	case len(r.Failures) > 0:
		return r.Failures[0].String()
	case len(r.Reasons) > 0:
		return strings.Join(r.Reasons, "; ")
	default:
		return string(r.Status)
	}
}
