package check

import (
	"strings"
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/check/facts"
	"github.com/kmsharness/kmsharness/harness/history"
)

// A watch that is cut and connects anew delivers late what it had, then the newest state; of those between, nothing. Who wrote what changed meanwhile is
// in the audit log. How late it was is known also if the first of the late ones is of a write that timed out, whose state nobody knows.
func TestWrittenWhileTheWatchWasCut(t *testing.T) {
	for name, c := range map[string]struct {
		unaudited bool // the aggregator's writes of that time
		violated  bool
	}{
		"by the aggregator": {},
		"by nobody known":   {unaudited: true, violated: true},
	} {
		t.Run(name, func(t *testing.T) {
			events := faulty(nil, "error")
			from, to := events[0].At.Add(9*time.Second), events[0].At.Add(15*time.Second)
			cut := func(e history.Event) bool { return e.At.After(from) && e.At.Before(to) }
			onCR := func(e history.Event) bool {
				return e.Object != nil && e.Object.Resource == "kubeapiservers.operator.openshift.io"
			}
			lost, late, unaudited := 0, 0, 0
			var seen []history.Event
			for _, e := range events {
				switch {
				case cut(e) && late == 0 && e.Request != nil && e.Request.Verb == "patch": // of the first late state
					timedOut := *e.Request
					timedOut.Code, timedOut.ResourceVersion = 504, ""
					e.Request = &timedOut
				case cut(e) && onCR(e) && late < 2:
					late++
					e.At = to
				case cut(e) && onCR(e):
					lost++
					continue
				case c.unaudited && cut(e) && e.Request != nil && e.Request.User == contract.AggregatorIdentity && e.Request.Verb == "patch":
					unaudited++
					continue
				}
				seen = append(seen, e)
			}
			if lost < 3 || c.unaudited && unaudited == 0 {
				t.Fatalf("%d states lost, %d writes unaudited", lost, unaudited)
			}
			f := invariant("OWNERSHIP").Judge(facts.New(seen))
			if f.Judged == 0 || len(f.Violations) > 0 != c.violated {
				t.Errorf("violated %v, expected %v: %v", len(f.Violations) > 0, c.violated, f.Violations)
			}
		})
	}
}

// An apply without force that is refused is the cause of what follows; those that succeed count once for each reporter.
func TestApplyWithoutForce(t *testing.T) {
	events := faulty(nil, "")
	refused := 0
	for n, e := range events {
		if e.Request == nil || e.Request.Verb != "patch" || e.Request.User != contract.ReporterIdentity("cp-2") {
			continue
		}
		unforced := unforced(*e.Request)
		if e.At.After(events[0].At.Add(30 * time.Second)) {
			unforced.Code, unforced.Reason, unforced.Message = 409, "Conflict", `conflict with "kubectl"`
			refused++
		}
		events[n].Request = &unforced
	}
	v := Run(events)
	if refused == 0 || v.Failing[0].ID != "OWNERSHIP" || statusOf(v, AcceptedID) != Passed {
		t.Fatalf("%d refused: %s", refused, printed(t, v))
	}
	for _, r := range v.Invariants {
		if r.ID == "OWNERSHIP" && (r.Count < refused || r.Violations[1].Harmless || !strings.Contains(r.Violations[1].Seen, `409 Conflict: "conflict with`)) {
			t.Errorf("%d refused: %+v", refused, r.Violations)
		}
	}
}
