package check

import (
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/history"
)

// TestWhatIsRememberedIsTheTable: over scenes that change a little from one to the next, sound and unsound, what is remembered is what
// the table says anew, and it is remembered often.
func TestWhatIsRememberedIsTheTable(t *testing.T) {
	v := noFacts()
	v.run.Timing.Interval = 30 * time.Second
	rng := rand.New(rand.NewPCG(1, 2))
	one := func(of ...string) string { return of[rng.IntN(len(of))] }
	now, begun := time.Unix(1_000_000, 0), 0
	x := expectation{active: true, nodes: map[string]history.ExpectedNode{"cp-1": {}, "cp-2": {}}}
	reports := map[string]*report{}
	var last settled
	for range 3000 {
		now = now.Add(time.Duration(rng.IntN(40)) * time.Second)
		next := map[string]*report{}
		for _, n := range []string{"cp-1", "cp-2", one("", "", "", "", "", "", "", "", "stranger")} {
			r := reports[n]
			switch change := rng.IntN(40); {
			case n == "" || change == 0:
				continue
			case change < 4 || r == nil:
				r = &report{node: n, problem: one("", "", "", "", "", "malformed")}
				for _, k := range []string{"2", one("1", "3")} {
					r.entries = append(r.entries, entry{keyID: k, kekID: one("a", "a", "b", ""), status: contract.Status(one("healthy", "healthy", "unhealthy", "error")), checked: now})
				}
			case change < 38:
				again := *r
				again.entries = append([]entry(nil), r.entries...)
				for i := range again.entries {
					again.entries[i].checked = now.Add(time.Duration(rng.IntN(12)/10-rng.IntN(12)/11) * time.Duration(rng.IntN(200)) * time.Second)
				}
				r = &again
			}
			next[n] = r
		}
		reports = next
		graces := map[string]grace{}
		for n := range x.nodes {
			if reports[n] == nil {
				graces[n] = grace{now.Add(-time.Second), now.Add(time.Second)}
			}
		}
		before := last.rollups
		got := last.allowed(v, now, x, reports, graces)
		if want := v.truths.allowedAt(now, x, reports, graces); !reflect.DeepEqual(got, want) {
			t.Fatalf("remembered %v, the table says %v, of %v", got, want, reports)
		}
		if len(before) > 0 && len(got) > 0 && &before[0] == &got[0] {
			begun++
		}
	}
	if begun < 100 {
		t.Errorf("%d of 3000 scenes were remembered, expected more than a hundred", begun)
	}
}
