// Package junit writes results as JUnit XML, which CI systems show as tests.
package junit

import (
	"encoding/xml"
	"fmt"
	"io"
	"time"
)

// Suites is a file: suites of test cases.
type Suites struct {
	XMLName xml.Name `xml:"testsuites"`
	Counts
	Suites []Suite `xml:"testsuite"`
}

// Suite is a group of test cases.
type Suite struct {
	Name string `xml:"name,attr"`
	Counts
	Cases []Case `xml:"testcase"`
}

// Counts are those of a suite, or of all.
type Counts struct {
	Tests   int     `xml:"tests,attr"`
	Fails   int     `xml:"failures,attr"`
	Errors  int     `xml:"errors,attr"`
	Skipped int     `xml:"skipped,attr"`
	Time    Seconds `xml:"time,attr"`
}

// Seconds is a duration as JUnit has it: seconds to the millisecond.
type Seconds time.Duration

// MarshalText implements encoding.TextMarshaler.
func (t Seconds) MarshalText() ([]byte, error) {
	return fmt.Appendf(nil, "%.3f", time.Duration(t).Seconds()), nil
}

// Case is a test. One without a problem has passed.
type Case struct {
	Class      string     `xml:"classname,attr"`
	Name       string     `xml:"name,attr"`
	Time       Seconds    `xml:"time,attr"`
	Properties []Property `xml:"properties>property,omitempty"`
	Failure    *Problem   `xml:"failure,omitempty"`
	Error      *Problem   `xml:"error,omitempty"`
	Skipped    *Problem   `xml:"skipped,omitempty"`
}

// Property is what else is known of a case.
type Property struct {
	Name  string `xml:"name,attr"`
	Value string `xml:"value,attr"`
}

// Problem is why a case failed, could not run or was skipped.
type Problem struct {
	Type    string `xml:"type,attr,omitempty"`
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

// Add puts a case into the last suite, or into a new one if that has another name: cases come by suite.
func (d *Suites) Add(suite string, c Case) {
	if n := len(d.Suites); n == 0 || d.Suites[n-1].Name != suite {
		d.Suites = append(d.Suites, Suite{Name: suite})
	}
	last := &d.Suites[len(d.Suites)-1]
	last.Cases = append(last.Cases, c)
	one := func(is *Problem) int { return map[bool]int{true: 1}[is != nil] }
	for _, n := range []*Counts{&last.Counts, &d.Counts} {
		n.Tests, n.Fails, n.Errors, n.Skipped = n.Tests+1, n.Fails+one(c.Failure), n.Errors+one(c.Error), n.Skipped+one(c.Skipped)
		n.Time += c.Time
	}
}

// Write writes the file.
func (d *Suites) Write(w io.Writer) error {
	text, err := xml.MarshalIndent(d, "", "  ")
	if err == nil {
		_, err = fmt.Fprintf(w, "%s%s\n", xml.Header, text)
	}
	if err != nil {
		return fmt.Errorf("write JUnit: %w", err)
	}
	return nil
}
