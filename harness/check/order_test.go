package check

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/history"
)

// TestOrder: the cause comes first, whatever was seen first, and what follows from it comes behind it and says so. What another node did, or what was over long before, is no cause.
func TestOrder(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	timing := contract.DefaultTiming()
	stale := timing.StaleBound()
	at := func(id, node string, after time.Duration) Result {
		x := Violation{Invariant: id, Node: node, At: start.Add(after), Offset: after}
		if id == "NOTHING-RAN" {
			x.Since = start
		}
		return Result{ID: id, Status: Failed, Count: 1, Violations: []Violation{x}}
	}
	step := Failing{ID: "steps[1].expect", At: start.Add(3 * time.Second), Offset: 3 * time.Second, problem: "expectation steps[1].expect failed"}
	for name, c := range map[string]struct {
		failed []Result
		want   string // ids, with the cause of each
	}{
		"a refused write":                  {[]Result{at("CADENCE", "cp-1", 2*time.Second), at("ACCEPTED", "cp-1", time.Second)}, "ACCEPTED CADENCE<ACCEPTED steps[1].expect<ACCEPTED"},
		"a forbidden write":                {[]Result{at("FALSE-ALARM", "", 2*time.Second), at("LEAST-PRIVILEGE", "cp-1", time.Second)}, "LEAST-PRIVILEGE FALSE-ALARM<LEAST-PRIVILEGE steps[1].expect<LEAST-PRIVILEGE"},
		"of another node":                  {[]Result{at("ACCEPTED", "cp-2", time.Second), at("CADENCE", "cp-1", 2*time.Second)}, "ACCEPTED steps[1].expect<ACCEPTED CADENCE"},
		"long before":                      {[]Result{at("TRUTHFUL-PROBE", "cp-1", time.Second), at("DETECTION", "cp-1", time.Second+2*stale)}, "TRUTHFUL-PROBE steps[1].expect<TRUTHFUL-PROBE DETECTION"},
		"after its consequence":            {[]Result{at("ACCEPTED", "cp-1", 9*time.Second), at("CADENCE", "cp-1", 2*time.Second)}, "ACCEPTED CADENCE steps[1].expect<CADENCE"},
		"content is no cause of a rate":    {[]Result{at("CADENCE", "cp-1", 2*time.Second), at("FORMAT", "cp-1", time.Second)}, "FORMAT steps[1].expect<FORMAT CADENCE"},
		"a rate is no cause of a decision": {[]Result{at("ROLLUP-TRUTH", "", 2*time.Second), at("CADENCE", "cp-1", time.Second)}, "CADENCE steps[1].expect<CADENCE ROLLUP-TRUTH"},
		"two of a layer are in time":       {[]Result{at("MONOTONIC", "cp-1", 5*time.Second), at("FRESH-ONLY", "cp-1", 4*time.Second)}, "FRESH-ONLY MONOTONIC steps[1].expect"},
		"a manager of others":              {[]Result{at("CADENCE", "cp-1", 2*time.Second), at("OWNERSHIP", "cp-1", time.Second)}, "OWNERSHIP CADENCE<OWNERSHIP steps[1].expect<OWNERSHIP"},
		"nothing was judged for a cause":   {[]Result{at("NOTHING-RAN", "", 20*time.Second), at("CADENCE", "cp-1", 2*time.Second)}, "CADENCE steps[1].expect<CADENCE NOTHING-RAN<CADENCE"},
		"nothing was judged":               {[]Result{at("NOTHING-RAN", "", time.Second)}, "steps[1].expect NOTHING-RAN"},
	} {
		t.Run(name, func(t *testing.T) {
			for i := range c.failed {
				c.failed[i].timed = invariant(c.failed[i].ID).Timed != NoneTimed
			}
			v := Verdict{Invariants: c.failed, Problems: []string{step.problem}}
			v.order(history.Run{Timing: timing}, []Failing{step})
			var got []string
			for _, f := range v.Failing {
				cause, _, caused := strings.Cut(f.Because, " at +")
				if caused {
					cause = "<" + cause
				}
				got = append(got, f.ID+cause)
			}
			if text := strings.Join(got, " "); text != c.want {
				t.Errorf("%s, expected %s", text, c.want)
			}
			text, last := printed(t, v), -1
			for _, f := range v.Failing {
				place := strings.LastIndex(text, "\n"+f.ID+":")
				if f.problem != "" {
					place = strings.Index(text, f.problem)
				}
				if place <= last || f.Because != "" && !strings.Contains(text[place:], "because: "+f.Because) {
					t.Errorf("%s is not printed in its place, with its cause:\n%s", f.ID, text)
				}
				last = place
			}
		})
	}
}

// TestOwnFindingFirst: an invariant that is violated once because of something and once for itself is a finding of its own.
func TestOwnFindingFirst(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	of := func(id string, nodes ...string) Result {
		r := Result{ID: id, Status: Failed, Count: len(nodes)}
		for _, n := range nodes {
			r.Violations = append(r.Violations, Violation{Invariant: id, Node: n, At: start})
		}
		return r
	}
	v := Verdict{Invariants: []Result{of("ACCEPTED", "cp-1"), of("CADENCE", "cp-1", "cp-2")}}
	v.Invariants[1].timed = true
	v.order(history.Run{Timing: contract.DefaultTiming()}, nil)
	if f := v.Failing[1]; f.Because != "" || v.Invariants[1].Violations[0].Node != "cp-2" {
		t.Errorf("%+v, %+v", f, v.Invariants[1].Violations)
	}
}

// TestEveryInvariantHasALayer: each stands in one row of the causal order, and nothing else does.
func TestEveryInvariantHasALayer(t *testing.T) {
	var listed, ids []string
	for _, row := range causalOrder() {
		listed = append(listed, row.ids...)
	}
	for _, i := range Invariants() {
		ids = append(ids, i.ID)
	}
	slices.Sort(listed)
	slices.Sort(ids)
	if !slices.Equal(listed, ids) {
		t.Errorf("%v, expected %v", listed, ids)
	}
}
