package check

import (
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/check/facts"
	"github.com/kmsharness/kmsharness/harness/history"
)

// A throttled or lossy link delivers what its senders have given up, any number of times. A link that loses everything delivers one
// request late; a stale list of the load balancer and slow handshakes hold nothing back.
func TestLateWritesOverImpairedLinks(t *testing.T) {
	for state, excused := range map[string]bool{
		history.LinkOK: false, history.LinkThrottled: true, history.LinkLossy: true, history.LinkCut: false, history.LinkSlowHandshake: false, history.LinkStale: false,
	} {
		w := newWorld(3, "1")
		entriesAs(10*sec, 20*sec, func(w *world, e *facts.WireEntry) { e.LastChecked = contract.FormatTime(w.now.Add(-4 * sec)) })(w)
		link := func(state string) func(*world) {
			return func(w *world) {
				w.record("backend", &history.Link{From: history.RoleReporter, To: history.RoleAPIServer, Node: "cp-2", State: state, Delay: time.Second})
			}
		}
		w.at(9*sec, link(state)).at(21*sec, link(history.LinkOK))
		w.boot()
		if f := invariant("FRESH-ONLY").Judge(facts.New(w.finish(30 * time.Second))); (len(f.Violations) == 0) != excused {
			t.Errorf("%s: late writes excused: %v, expected %v; %v", state, len(f.Violations) == 0, excused, f.Violations)
		}
	}
}
