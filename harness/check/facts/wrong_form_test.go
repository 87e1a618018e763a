package facts

import (
	"testing"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/history"
)

// TestWrongFormRefused: where the CRD has no field for the reports nobody sees one, and what was refused tells the form.
func TestWrongFormRefused(t *testing.T) {
	write := func(b Body) *Request {
		return &Request{Request: &history.Request{Verb: "apply", Code: 500}, Node: "cp-1", Write: true, Body: b}
	}
	typed := write(Body{Known: true, Typed: make([]contract.TypedReport, 1)})
	for want, requests := range map[string][]*Request{
		history.FormHealthReports: {typed},
		"":                        {typed, write(Body{Known: true, Conditions: make([]history.Condition, 1)})},
	} {
		v := New(nil)
		v.Run, v.Requests = history.Run{Contract: history.FormConditions}, requests
		if got := v.WrongForm(); got != want {
			t.Errorf("wrong form %q, want %q", got, want)
		}
	}
}
