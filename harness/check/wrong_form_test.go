package check

import (
	"testing"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/check/facts"
	"github.com/kmsharness/kmsharness/harness/history"
)

// TestWrongFormRefused: where the CRD has no field for the reports nobody sees one, and what was refused tells the form.
func TestWrongFormRefused(t *testing.T) {
	write := func(b facts.Body) *facts.Request {
		return &facts.Request{Request: &history.Request{Verb: "apply", Code: 500}, Node: "cp-1", Write: true, Body: b}
	}
	typed := write(facts.Body{Known: true, Typed: make([]contract.TypedReport, 1)})
	for want, requests := range map[string][]*facts.Request{
		history.FormHealthReports: {typed},
		"":                        {typed, write(facts.Body{Known: true, Conditions: make([]history.Condition, 1)})},
	} {
		v := facts.New(nil)
		v.Run, v.Requests.All = history.Run{Contract: history.FormConditions}, requests
		if got := wrongForm(v); got != want {
			t.Errorf("wrong form %q, want %q", got, want)
		}
	}
}
