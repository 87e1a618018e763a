package report

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/kmsharness/kmsharness/harness/result"

	"github.com/kmsharness/kmsharness/contract"
)

// ClassPrefix begins the class name of a test case; the area follows. Names are the same on every run and backend.
const ClassPrefix = "kmsharness."

const maxJUnitText = 16 << 10

type junitSuites struct {
	XMLName xml.Name `xml:"testsuites"`
	junitCounts
	Suites []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name string `xml:"name,attr"`
	junitCounts
	Cases []junitCase `xml:"testcase"`
}

type junitCounts struct {
	Tests   int       `xml:"tests,attr"`
	Fails   int       `xml:"failures,attr"`
	Errors  int       `xml:"errors,attr"`
	Skipped int       `xml:"skipped,attr"`
	Time    junitTime `xml:"time,attr"`
}

// junitTime is in seconds.
type junitTime time.Duration

// MarshalText implements encoding.TextMarshaler.
func (t junitTime) MarshalText() ([]byte, error) {
	return fmt.Appendf(nil, "%.3f", time.Duration(t).Seconds()), nil
}

type junitCase struct {
	Class      string          `xml:"classname,attr"`
	Name       string          `xml:"name,attr"`
	Time       junitTime       `xml:"time,attr"`
	Properties []junitProperty `xml:"properties>property,omitempty"`
	Failure    *junitProblem   `xml:"failure,omitempty"`
	Error      *junitProblem   `xml:"error,omitempty"`
	Skipped    *junitProblem   `xml:"skipped,omitempty"`
}

type junitProperty struct {
	Name  string `xml:"name,attr"`
	Value string `xml:"value,attr"`
}

type junitProblem struct {
	Type    string `xml:"type,attr,omitempty"`
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

// WriteJUnit writes all results as one JUnit file with one suite per area. A run without any scenario has one failed
// case, so that no consumer takes the empty file for a pass.
func (s Summary) WriteJUnit(w io.Writer) error {
	var doc junitSuites
	for _, r := range s.sorted() {
		doc.add(caseOf(r))
	}
	if len(s.Results) == 0 {
		nothing := &junitProblem{Message: "no scenario ran", Text: "expected at least one"}
		doc.add(junitCase{Class: ClassPrefix + "run", Name: "at-least-one-scenario-ran", Failure: nothing})
	}
	doc.Time = junitTime(s.Took)
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return fmt.Errorf("write JUnit: %w", err)
	}
	encoder := xml.NewEncoder(w)
	encoder.Indent("", "  ")
	if err := encoder.Encode(doc); err != nil {
		return fmt.Errorf("write JUnit: %w", err)
	}
	_, err := io.WriteString(w, "\n")
	return err
}

func caseOf(r result.Result) junitCase {
	c := junitCase{Class: ClassPrefix + r.Area, Name: r.Scenario, Time: junitTime(r.Took)}
	if r.Form != "" {
		c.Properties = []junitProperty{{"form", r.Form}}
	}
	p := &junitProblem{Message: contract.SafeLines(headline(r), 512), Text: contract.SafeLines(r.Text(), maxJUnitText)}
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

// add puts a case into the last suite, or into a new one if its class is another: cases come by class.
func (d *junitSuites) add(c junitCase) {
	if n := len(d.Suites); n == 0 || d.Suites[n-1].Name != c.Class {
		d.Suites = append(d.Suites, junitSuite{Name: c.Class})
	}
	last := &d.Suites[len(d.Suites)-1]
	last.Cases = append(last.Cases, c)
	one := func(is *junitProblem) int { return map[bool]int{true: 1}[is != nil] }
	for _, n := range []*junitCounts{&last.junitCounts, &d.junitCounts} {
		n.Tests, n.Fails, n.Errors, n.Skipped = n.Tests+1, n.Fails+one(c.Failure), n.Errors+one(c.Error), n.Skipped+one(c.Skipped)
		n.Time += c.Time
	}
}
