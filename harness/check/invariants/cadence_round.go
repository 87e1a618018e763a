package invariants

import (
	"slices"
	"time"

	"github.com/kmsharness/kmsharness/harness/check/facts"
	"github.com/kmsharness/kmsharness/harness/check/span"
	"github.com/kmsharness/kmsharness/harness/check/text"
	"github.com/kmsharness/kmsharness/harness/history"
)

// longRound describes what made a round of probes take too long, where the journals of the node's plugins show it: a Status call that went on after its
// deadline, or calls that were made in turn and not concurrently. It is empty otherwise.
func longRound(v *facts.Facts, node string, gap span.Span) string {
	deadline, tolerance := v.Run.Timing.ProbeTimeout, v.Tolerance()
	var calls []*history.Call
	for _, t := range v.Plugins {
		for _, p := range t.Probes {
			if t.Node == node && !span.New(p.Began, p.Ended).Clip(gap).Empty() {
				calls = append(calls, p.Call)
			}
		}
	}
	slices.SortStableFunc(calls, func(a, b *history.Call) int { return a.Began.Compare(b.Began) })
	// beganIn reports whether another call of the same plugin began: the reporter's, where c is that of an API server.
	beganIn := func(keyID string, c *history.Call, from, to time.Time) bool {
		return slices.ContainsFunc(calls, func(o *history.Call) bool {
			return o != c && o.KeyID == keyID && !o.Began.Before(from) && o.Began.Before(to)
		})
	}
	inTurn := ""
	for _, c := range calls {
		took := c.Ended.Sub(c.Began)
		if took > deadline+deadline/10+tolerance && !beganIn(c.KeyID, c, c.Began, c.Ended) {
			return ": its Status call of plugin " + c.KeyID + " went on for " + text.Short(took) + ", and the deadline of each is " + text.Short(deadline)
		}
		soon := c.Ended.Add(deadline/10 + tolerance)
		if inTurn != "" || took < deadline/2 || beganIn(c.KeyID, c, c.Ended, soon) {
			continue
		}
		next := slices.IndexFunc(calls, func(o *history.Call) bool {
			return o.KeyID != c.KeyID && !o.Began.Before(c.Ended) && o.Began.Before(soon) && !beganIn(o.KeyID, o, c.Began.Add(-tolerance), c.Ended)
		})
		if next >= 0 {
			inTurn = ": it calls Status of its plugins in turn and not concurrently, plugin " + calls[next].KeyID + " when the call of plugin " + c.KeyID + " has ended"
		}
	}
	return inTurn
}
