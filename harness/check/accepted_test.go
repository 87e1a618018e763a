package check

import (
	"testing"

	"github.com/kmsharness/kmsharness/harness/history"
)

// TestOwnCauses: that an API server has not checked further rules is no cause, unless it names no other.
func TestOwnCauses(t *testing.T) {
	remark := history.Cause{Field: "<nil>", Message: notChecked}
	root := history.Cause{Field: "<nil>", Message: "Invalid value: no more than one"}
	required := history.Cause{Field: "status.a", Reason: "FieldValueRequired", Message: "Required value"}
	of := func(causes ...history.Cause) request {
		return request{Request: &history.Request{Code: 422, Reason: "Invalid", Causes: causes}}
	}
	if a, b := of(required, remark), of(required); a.refusal() != b.refusal() || a.rule() != b.rule() {
		t.Errorf("%q and %q, %q and %q", a.refusal(), b.refusal(), a.rule(), b.rule())
	}
	if a, b := of(required, root, remark), of(required); a.refusal() == b.refusal() || a.rule() == b.rule() {
		t.Errorf("a rule of the whole object is lost: %q, %q", a.refusal(), a.rule())
	}
	if got := of(remark).refusal(); got != `422 Invalid: <nil>: "some validation rules were not checked"` {
		t.Errorf("alone: %s", got)
	}
}
