package conformance

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"
)

type junitSuite struct {
	XMLName  xml.Name    `xml:"testsuite"`
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Skipped  int         `xml:"skipped,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Class   string     `xml:"classname,attr"`
	Name    string     `xml:"name,attr"`
	Time    string     `xml:"time,attr"`
	Failure *junitText `xml:"failure,omitempty"`
	Skipped *junitText `xml:"skipped,omitempty"`
}

type junitText struct {
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

// WriteJUnit writes the report as one JUnit suite, a case for each check. A blocked check is a failure: it showed nothing.
func (r *Report) WriteJUnit(w io.Writer) error {
	doc := junitSuite{Name: "kmsharness.conformance." + r.Suite, Tests: len(r.Results)}
	for _, result := range r.Results {
		c := junitCase{Class: doc.Name + "." + string(result.Profile), Name: result.ID, Time: fmt.Sprintf("%.3f", result.Duration.Seconds())}
		switch result.Outcome {
		case Failed, Blocked:
			doc.Failures++
			var text strings.Builder
			for _, l := range result.Lines() {
				fmt.Fprintf(&text, "%s: %s\n", l.Label, l.Text)
			}
			message := result.Rule
			if result.Outcome == Blocked {
				message = "blocked: " + result.Reason
			}
			c.Failure = &junitText{Message: message, Text: text.String()}
		case NotSupported, Skipped, Inconclusive:
			doc.Skipped++
			c.Skipped = &junitText{Message: string(result.Outcome) + ": " + result.Reason}
		}
		doc.Cases = append(doc.Cases, c)
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return fmt.Errorf("write JUnit: %w", err)
	}
	encoder := xml.NewEncoder(w)
	encoder.Indent("", "  ")
	if err := encoder.Encode(doc); err != nil {
		return fmt.Errorf("write JUnit: %w", err)
	}
	return nil
}
