package report

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/kmsharness/kmsharness/harness/result"

	"github.com/kmsharness/kmsharness/harness/check"
)

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

func (m Machine) Encode() ([]byte, error) {
	data, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode the summary: %w", err)
	}
	return append(data, '\n'), nil
}
