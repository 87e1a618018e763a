package plugin

import (
	"testing"

	"github.com/kmsharness/kmsharness/conformance"
)

// TestOneLine: what a plugin says cannot move the cursor of who reads it.
func TestOneLine(t *testing.T) {
	r := conformance.Result{Check: conformance.Check{ID: "ID"}, Evidence: &conformance.Evidence{Request: "Status", Response: "\x1b[2Jnot\nwell\u202e", Expected: "ok"}}
	if got := oneLine(r); got != "NOT usable: ID: Status: [2Jnot well , expected ok" {
		t.Errorf("%q", got)
	}
}
