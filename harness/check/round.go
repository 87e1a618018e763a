package check

import (
	"slices"
	"time"

	"github.com/kmsharness/kmsharness/harness/history"
)

// longRound describes what made a round of probes take too long, where the journals of the node's plugins show it: a Status call that went on after its
// deadline, or calls that were made in turn and not concurrently. It is empty otherwise.
func (pl *pluginFacts) longRound(node string, gap span) string {
	deadline, tolerance := pl.facts.run.Timing.ProbeTimeout, pl.facts.tolerance()
	var calls []*history.Call
	for _, t := range pl.sorted() {
		for _, p := range t.probes {
			if t.node == node && !(span{p.Began, p.Ended}).clip(gap).empty() {
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
	turns, first, second := 0, "", ""
	for _, c := range calls {
		took := c.Ended.Sub(c.Began)
		if took > deadline+deadline/10+tolerance && !beganIn(c.KeyID, c, c.Began, c.Ended) {
			return ": its Status call of plugin " + c.KeyID + " went on for " + short(took) + ", and the deadline of each is " + short(deadline)
		}
		if took < deadline/2 {
			continue
		}
		soon := c.Ended.Add(deadline/10 + tolerance)
		next := slices.IndexFunc(calls, func(o *history.Call) bool {
			return o.KeyID != c.KeyID && !o.Began.Before(c.Ended) && o.Began.Before(soon) && !beganIn(o.KeyID, o, c.Began.Add(-tolerance), c.Ended)
		})
		if next >= 0 && !beganIn(c.KeyID, c, c.Ended, soon) {
			if turns++; turns == 1 {
				first, second = c.KeyID, calls[next].KeyID
			}
		}
	}
	if turns == 0 {
		return ""
	}
	return ": it calls Status of its plugins in turn and not concurrently, plugin " + second + " when the call of plugin " + first + " has ended"
}
