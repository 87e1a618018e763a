package check

import (
	"sync"
	"testing"

	"github.com/kmsharness/kmsharness/harness/check/invariants"
)

// verdictsOfBad are those of the known-bad histories, in their order.
var verdictsOfBad = sync.OnceValue(func() (all []Verdict) {
	for _, bad := range knownBad() {
		all = append(all, Run(bad.build()))
	}
	return all
})

// windows are the invariants with a bound: their violations say since when and until when the right thing was due.
var windows = map[string]bool{"FALSE-HEALTHY": true, "DETECTION": true, "RECOVERY": true, "STALE-UNKNOWN": true, "NO-ORPHAN": true, "FRESH-ONLY": true}

func TestViolationsHaveTheirWindow(t *testing.T) {
	if testing.Short() {
		t.Skip("long: make simulations")
	}
	met := map[string]bool{}
	for i, bad := range knownBad() {
		for _, r := range verdictsOfBad()[i].Invariants {
			for _, v := range r.Violations {
				switch {
				// The end of a plugin is one where it is not started again in time: the window begins with it.
				case v.From.IsZero() != v.To.IsZero(), v.To.Before(v.From), v.To.After(v.At) && r.ID != "SWITCH-ORDER":
					t.Errorf("%s: %s at %s has the window %s to %s", bad.name, r.ID, v.At, v.From, v.To)
				case windows[r.ID] && v.To.IsZero():
					t.Errorf("%s: %s at %s has no window", bad.name, r.ID, v.At)
				}
				met[r.ID] = met[r.ID] || !v.To.IsZero()
			}
		}
	}
	for id := range windows {
		if !met[id] {
			t.Errorf("no known-bad history gives a violation of %s with a window", id)
		}
	}
}

func TestLatenciesKeepTheirSamples(t *testing.T) {
	if testing.Short() {
		t.Skip("long: make simulations")
	}
	for i, bad := range knownBad() {
		v := verdictsOfBad()[i]
		for name, l := range map[string]Latency{"detection": v.Detection, "recovery": v.Recovery} {
			if len(l.Samples) != min(l.Count, invariants.MaxSamples) {
				t.Errorf("%s: %s has %d samples, %d measured", bad.name, name, len(l.Samples), l.Count)
			}
		}
	}
}
