package report

import (
	"encoding/xml"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/kmsharness/kmsharness/harness/result"

	"github.com/kmsharness/kmsharness/contract"
)

// ClassPrefix begins the class name of a test case; the area follows. Names are the same on every run and backend.
const ClassPrefix = "kmsharness."

const maxJUnitText = 16 << 10

type junitSuites struct {
	XMLName xml.Name     `xml:"testsuites"`
	Tests   int          `xml:"tests,attr"`
	Fails   int          `xml:"failures,attr"`
	Errors  int          `xml:"errors,attr"`
	Skipped int          `xml:"skipped,attr"`
	Time    string       `xml:"time,attr"`
	Suites  []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name    string      `xml:"name,attr"`
	Tests   int         `xml:"tests,attr"`
	Fails   int         `xml:"failures,attr"`
	Errors  int         `xml:"errors,attr"`
	Skipped int         `xml:"skipped,attr"`
	Time    string      `xml:"time,attr"`
	Cases   []junitCase `xml:"testcase"`
}

type junitCase struct {
	Class      string          `xml:"classname,attr"`
	Name       string          `xml:"name,attr"`
	Time       string          `xml:"time,attr"`
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
	doc := junitSuites{Time: seconds(s.Took)}
	for _, r := range s.sorted() {
		doc.add(ClassPrefix+r.Area, caseOf(r), r.Took)
	}
	if len(s.Results) == 0 {
		nothing := &junitProblem{Message: "no scenario ran", Text: "expected at least one"}
		doc.add(ClassPrefix+"run", junitCase{Class: ClassPrefix + "run", Name: "at-least-one-scenario-ran", Time: seconds(0), Failure: nothing}, 0)
	}
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
	c := junitCase{Class: ClassPrefix + r.Area, Name: r.Scenario, Time: seconds(r.Took)}
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

func (d *junitSuites) add(name string, c junitCase, took time.Duration) {
	i := slices.IndexFunc(d.Suites, func(s junitSuite) bool { return s.Name == name })
	if i < 0 {
		d.Suites = append(d.Suites, junitSuite{Name: name, Time: seconds(0)})
		i = len(d.Suites) - 1
	}
	s := &d.Suites[i]
	s.Cases = append(s.Cases, c)
	s.Time = seconds(parseSeconds(s.Time) + took)
	s.Tests, d.Tests = s.Tests+1, d.Tests+1
	count := func(is *junitProblem, suite, all *int) {
		if is != nil {
			*suite, *all = *suite+1, *all+1
		}
	}
	count(c.Failure, &s.Fails, &d.Fails)
	count(c.Error, &s.Errors, &d.Errors)
	count(c.Skipped, &s.Skipped, &d.Skipped)
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.3f", d.Seconds()) }

func parseSeconds(s string) time.Duration {
	d, _ := time.ParseDuration(s + "s")
	return d
}
