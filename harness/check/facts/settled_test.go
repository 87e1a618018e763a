package facts

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
	v := New(nil)
	v.Run.Timing.Interval = 30 * time.Second
	rng := rand.New(rand.NewPCG(1, 2))
	one := func(of ...string) string { return of[rng.IntN(len(of))] }
	now, begun := time.Unix(1_000_000, 0), 0
	x := Expectation{Active: true, Nodes: map[string]history.ExpectedNode{"cp-1": {}, "cp-2": {}}}
	reports := map[string]*Report{}
	var last settled
	for range 3000 {
		now = now.Add(time.Duration(rng.IntN(40)) * time.Second)
		next := map[string]*Report{}
		for _, n := range []string{"cp-1", "cp-2", one("", "", "", "", "", "", "", "", "stranger")} {
			r := reports[n]
			switch change := rng.IntN(40); {
			case n == "" || change == 0:
				continue
			case change < 4 || r == nil:
				r = &Report{Node: n, Problem: one("", "", "", "", "", "malformed")}
				for _, k := range []string{"2", one("1", "3")} {
					r.Entries = append(r.Entries, Entry{KeyID: k, KEKID: one("a", "a", "b", ""), Status: contract.Status(one("healthy", "healthy", "unhealthy", "error")), Checked: now})
				}
			case change < 38:
				again := *r
				again.Entries = append([]Entry(nil), r.Entries...)
				for i := range again.Entries {
					again.Entries[i].Checked = now.Add(time.Duration(rng.IntN(12)/10-rng.IntN(12)/11) * time.Duration(rng.IntN(200)) * time.Second)
				}
				r = &again
			}
			next[n] = r
		}
		reports = next
		graces := map[string]grace{}
		for n := range x.Nodes {
			if reports[n] == nil {
				graces[n] = grace{now.Add(-time.Second), now.Add(time.Second)}
			}
		}
		before := last.rollups
		got := last.allowed(v, now, x, reports, graces)
		if want := v.allowedAt(now, x, reports, graces); !reflect.DeepEqual(got, want) {
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
