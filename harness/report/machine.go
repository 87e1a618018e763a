package report

import (
	"io"
	"slices"
	"strings"
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/check"
	"github.com/kmsharness/kmsharness/harness/result"
	"github.com/kmsharness/kmsharness/internal/junit"
	"github.com/kmsharness/kmsharness/internal/printer"
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

// SummarySchema names the format of summary.json. Fields may be added to it; those that are there keep their meaning.
const SummarySchema = "kmsharness.io/summary/v1"

// Machine is all runs for programs: summary.json. Durations are nanoseconds, as in every file of a run.
type Machine struct {
	Schema string `json:"schema"`
	// OK: something ran, and nothing failed, could not run, is inconclusive or was interrupted.
	OK     bool                  `json:"ok"`
	Counts map[result.Status]int `json:"counts"`
	Took   time.Duration         `json:"took"`
	// Coverage says which invariants were exercised.
	Coverage string `json:"coverage,omitempty"`
	// Statements of the sources that scenarios which passed exercised, sorted.
	Statements []string `json:"statements,omitempty"`
	// NotExercised are the other statements that are known, sorted.
	NotExercised []string     `json:"notExercised,omitempty"`
	Runs         []MachineRun `json:"runs"`
}

type MachineRun struct {
	// Column tells runs of the same scenario apart: the backend, with the folder where two have the same.
	Column string `json:"column"`
	result.Result
	Invariants map[string]check.Status `json:"invariants,omitempty"`
	Detection  *check.Latency          `json:"detection,omitempty"`
	Recovery   *check.Latency          `json:"recovery,omitempty"`
	// History and Page are beside summary.json, or relative to it.
	History string `json:"history,omitempty"`
	Page    string `json:"page"`
}

// NewMachine counts the runs. statements are the ids of all that are known.
func NewMachine(s Summary, coverage string, runs []MachineRun, statements []string) Machine {
	m := Machine{Schema: SummarySchema, OK: s.ExitCode() == ExitPassed, Took: s.Took, Coverage: coverage, Runs: runs, Counts: map[result.Status]int{}}
	for _, status := range result.Statuses() {
		m.Counts[status] = s.Count(status)
	}
	for _, r := range s.Results {
		m.Statements = append(m.Statements, r.Covers...)
	}
	slices.Sort(m.Statements)
	m.Statements = slices.Compact(m.Statements)
	for _, id := range statements {
		if !slices.Contains(m.Statements, id) {
			m.NotExercised = append(m.NotExercised, id)
		}
	}
	slices.Sort(m.NotExercised)
	return m
}

func (m Machine) Write(w io.Writer) error { return printer.WriteJSON(w, m) }
