package swarm

import (
	"fmt"

	"github.com/kmsharness/kmsharness/harness/history"
)

// refusal lets API servers refuse requests, for a while or so many of them, all or those of one verb; and ends it, if it has not ended.
func (d *drawing) refusal(whose string, verbs ...string) []string {
	mode := d.keyword(history.RefusalModes()...)
	what := whose + ", mode: " + mode
	switch verb := d.keyword(verbs...); {
	case mode == history.RefuseWebhookTimeout:
		what += d.keyword("", ", verb: patch")
	case d.rng.IntN(2) == 0:
		what += ", verb: " + verb
	}
	if mode == history.RefuseTooManyRequests {
		what += fmt.Sprintf(", retryAfter: %d", d.one(1, 1, 1, 2, 7))
	}
	if d.rng.IntN(3) == 0 {
		what += ", " + d.keyword("count: 1", "count: 5", "for: 0.5I", "for: 6I")
	}
	return d.during("refuse: {"+what+"}", "refuse: {"+whose+", mode: restore}")
}

// watches lets aggregators learn late of what changes, by less than reports are believed or by more, or ends their watches.
func (d *drawing) watches() []string {
	at := d.keyword("", "", "node: "+d.node()+", ")
	if d.rng.IntN(3) == 0 {
		return []string{"watches: {" + at + "mode: " + d.keyword(history.WatchesExpired, history.WatchesClosed) + "}"}
	}
	return d.during("watches: {"+at+"mode: late, by: "+d.keyword("0.2I", "0.9I", "3I", "7I")+"}", "watches: {"+at+"mode: restore}")
}
