package page

import (
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/harness/result"
)

// TestBecause: what follows from another failure says so, and comes after it.
func TestBecause(t *testing.T) {
	r := Run{Result: result.Result{Failures: []result.Failure{
		{ID: "CADENCE", At: time.Unix(1, 0), Because: "writes were refused"}, {ID: "ACCEPTED", At: time.Unix(2, 0)}}}}
	all := r.Failures()
	if len(all) != 2 || all[0].ID != "ACCEPTED" || all[1].Because != "writes were refused" {
		t.Errorf("%+v", all)
	}
}
