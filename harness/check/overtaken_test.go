package check

import (
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/check/facts"
)

// A report is renewed at about the time at which the one before grows stale. An aggregator that read the one before, and its clock after that, says that it is
// stale as long as its latency lasts; not before its clock says so, and not later.
func TestStaleOvertakenByARenewal(t *testing.T) {
	for name, c := range map[string]struct {
		stale    time.Duration // after the renewal
		from, to time.Duration // of the rollup, after the renewal
		allowed  bool
	}{
		"stale just after the renewal":                {stale: 150 * milli, from: 200 * milli, to: 600 * milli, allowed: true},
		"stale when the report is renewed":            {stale: 0, from: 50 * milli, to: 600 * milli, allowed: true},
		"stale within the latency":                    {stale: 700 * milli, from: 750 * milli, to: 950 * milli, allowed: true},
		"said too early by the clock":                 {stale: 700 * milli, from: 100 * milli, to: 400 * milli},
		"said too late":                               {stale: 150 * milli, from: 200 * milli, to: 1500 * milli},
		"not stale before the renewal was to be seen": {stale: 1500 * milli, from: 100 * milli, to: 900 * milli},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(3, "1")
			w.bad.steady = true
			var before, renewed time.Time
			w.bad.entries = func(w *world, node string, e []facts.WireEntry) []facts.WireEntry {
				switch d := w.now.Sub(w.start); {
				case node != "cp-2":
				case d >= 12*sec && d < 13*sec:
					before = w.now
					e[0].LastChecked = contract.FormatTime(w.now.Add(sec + c.stale - contract.StaleAfter(time.Second)))
				case d >= 13*sec && d < 14*sec:
					renewed = w.now
				}
				return e
			}
			w.bad.table = func(w *world, all map[string]facts.Value, message *string) {
				if d := w.now.Sub(renewed); !renewed.IsZero() && d >= c.from && d < c.to {
					all[contract.ConditionDegraded], *message = said("Unknown", contract.ReasonReportStale), "cp-2/1: report is stale"
				}
			}
			w.boot()
			v := facts.New(w.finish(20 * time.Second))
			if renewed.Sub(before) != sec {
				t.Fatalf("reports %v apart, expected 1s", renewed.Sub(before))
			}
			if f := invariant("ROLLUP-TRUTH").Judge(v); f.Judged == 0 || (len(f.Violations) == 0) != c.allowed {
				t.Errorf("allowed %v, expected %v: %v", len(f.Violations) == 0, c.allowed, f.Violations)
			}
		})
	}
}
