package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/history"
)

// maxWaits is how many of the longest waits are kept of a scenario, and shown of a run.
const maxWaits = 5

// maxWaitChars bounds the description of a wait.
const maxWaitChars = 80

// Wait is a part of a scenario for which the engine waited.
type Wait struct {
	For  string        `json:"for"` // "preparation of 3 nodes", "steps[3].expect within 30s", "steps[2] restart reporter/cp-1"
	Took time.Duration `json:"took"`
}

// Waited stores how long the preparation of the environment took, and the longest waits of the run. Waits of one scenario can overlap,
// because its steps can. It is not for virtual time, in which nothing waits.
func (r *Result) Waited(preparation time.Duration, nodes int, events []history.Event) {
	r.Preparation = preparation
	all := append([]Wait{{fmt.Sprintf("preparation of %s", plural(nodes, "node")), preparation}}, waits(events)...)
	all = slices.DeleteFunc(all, func(w Wait) bool { return round(w.Took) <= 0 })
	slices.SortStableFunc(all, func(a, b Wait) int { return cmp.Compare(b.Took, a.Took) })
	r.Waits = all[:min(len(all), maxWaits)]
}

// waits are the expectations and actions of a history, and the end of its recording.
func waits(events []history.Event) []Wait {
	var out []Wait
	began := map[string]time.Time{} // actions by ID; the end of the recording by ""
	for _, e := range events {
		switch {
		case e.Expectation != nil:
			x := e.Expectation
			mode := x.Mode
			if mode != "within" { // "holds" and "never" last as long as they say
				mode = "for"
			}
			out = append(out, Wait{fmt.Sprintf("%s %s %v", x.ID, mode, x.Bound), x.Took})
		case e.Action != nil && e.Action.State == history.ActionBegan:
			began[e.Action.ID] = e.At
		case e.Action != nil && !began[e.Action.ID].IsZero():
			out = append(out, Wait{strings.TrimSpace(e.Action.ID + " " + e.Action.Verb + " " + e.Action.Target), e.At.Sub(began[e.Action.ID])})
		case e.Phase != nil && e.Phase.Name == history.PhaseEnd:
			began[""] = e.At
		case e.End != nil && !began[""].IsZero():
			out = append(out, Wait{"end of the recording", e.At.Sub(began[""])})
		}
	}
	return out
}

// WaitsText is what all scenarios waited for longest, and the share of their preparation; empty if nothing is known of it.
func (s Summary) WaitsText() string {
	type of struct {
		Wait
		scenario string
	}
	var all []of
	var preparation, whole time.Duration
	measured := 0
	for _, r := range s.sorted() {
		if len(r.Waits) == 0 {
			continue
		}
		measured, preparation, whole = measured+1, preparation+r.Preparation, whole+r.Took
		for _, w := range r.Waits {
			all = append(all, of{w, r.Scenario})
		}
	}
	if measured == 0 {
		return ""
	}
	slices.SortStableFunc(all, func(a, b of) int { return cmp.Compare(b.Took, a.Took) })
	var longest []string
	for _, w := range all[:min(len(all), maxWaits)] {
		longest = append(longest, fmt.Sprintf("%s %v (%s)", contract.SafeText(w.For, maxWaitChars), round(w.Took), w.scenario))
	}
	text := fmt.Sprintf("waited longest for: %s\npreparation: %v of %v", strings.Join(longest, "; "), round(preparation), round(whole))
	if measured > 1 {
		text += fmt.Sprintf(", added up over %d scenarios, which may run side by side", measured)
	}
	return text
}

func plural(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}
