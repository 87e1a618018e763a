package result

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/internal/text"
)

// maxWaits is how many of the longest waits are kept of a scenario, and shown of a run.
const maxWaits = 5

// Wait is a part of a scenario for which the engine waited.
type Wait struct {
	For  string        `json:"for"` // "preparation of 3 nodes", "steps[3].expect within 30s", "steps[2] restart reporter/cp-1"
	Took time.Duration `json:"took"`
}

// Waited stores how long the preparation of the environment took, and the longest waits of the run. Waits of one scenario can overlap,
// because its steps can. It is not for virtual time, in which nothing waits.
func (r *Result) Waited(preparation time.Duration, nodes int, events []history.Event) {
	r.Preparation = preparation
	all := append([]Wait{{fmt.Sprintf("preparation of %s", text.Count(nodes, "node")), preparation}}, waits(events)...)
	all = slices.DeleteFunc(all, func(w Wait) bool { return text.Tenths(w.Took) <= 0 })
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
