package swarm

import (
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

// refusal lets API servers refuse requests, for a while or so many of them, all or those of one verb; and ends it, if it has not ended.
func (d *drawing) refusal(role, node string, verbs ...string) steps {
	mode, verb := pick(d.rng, history.RefusalModes()...), pick(d.rng, verbs...)
	r := scenario.Refuse{Role: role, Node: node, Mode: mode}
	switch {
	case mode == history.RefuseWebhookTimeout:
		r.Method = pick(d.rng, "", "patch")
	case d.rng.IntN(2) == 0:
		r.Method = verb
	}
	if mode == history.RefuseTooManyRequests {
		r.RetryAfter = pick(d.rng, 1, 1, 1, 2, 7)
	}
	if d.rng.IntN(3) == 0 {
		limit := pick(d.rng, []scenario.Refuse{{Count: 1}, {Count: 5}, {For: scenario.D("0.5I")}, {For: scenario.D("6I")}}...)
		r.Count, r.For = limit.Count, limit.For
	}
	return d.temporary(&r)
}

// watches lets aggregators learn late of what changes, by less than reports are believed or by more, or ends their watches.
func (d *drawing) watches() steps {
	w := scenario.Watches{Node: pick(d.rng, "", "", d.node())}
	if d.rng.IntN(3) == 0 {
		w.Mode = pick(d.rng, history.WatchesExpired, history.WatchesClosed)
		return steps{step(&w)}
	}
	w.Mode, w.By = history.WatchesLate, scenario.D(pick(d.rng, "0.2I", "0.9I", "3I", "7I"))
	return d.temporary(&w)
}
