package page

import (
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/harness/result"
)

// TestBecause: the page keeps the order of the result, whatever was first in time, and what follows from another failure says so.
func TestBecause(t *testing.T) {
	r := Run{Result: result.Result{Failures: []result.Failure{
		{ID: "ACCEPTED", At: time.Unix(2, 0)}, {ID: "CADENCE", Rule: "silent", At: time.Unix(1, 0), Because: "ACCEPTED at +2.000s"}}}}
	all := r.Failures()
	if len(all) != 2 || all[0].ID != "ACCEPTED" || all[1].Because != "ACCEPTED at +2.000s" || all[1].Code() != "CADENCE/silent" {
		t.Errorf("%+v", all)
	}
}
