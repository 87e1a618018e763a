package check

import (
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/history"
)

// A throttled or lossy link delivers what its senders have given up, any number of times. A link that loses everything delivers one
// request late; a stale list of the load balancer and slow handshakes hold nothing back.
func TestLateWritesOverImpairedLinks(t *testing.T) {
	for state, excused := range map[string]bool{
		history.LinkOK: false, history.LinkThrottled: true, history.LinkLossy: true, history.LinkCut: false, history.LinkSlowHandshake: false, history.LinkStale: false,
	} {
		w := newWorld(3, "1")
		entriesAs(10*sec, 20*sec, func(w *world, e *wire) { e.LastChecked = contract.FormatTime(w.now.Add(-4 * sec)) })(w)
		link := func(state string) func(*world) {
			return func(w *world) {
				w.record("backend", &history.Link{From: history.RoleReporter, To: history.RoleAPIServer, Node: "cp-2", State: state, Delay: time.Second})
			}
		}
		w.at(9*sec, link(state)).at(21*sec, link(history.LinkOK))
		w.boot()
		if f := judgeFreshOnly(newFacts(w.finish(30 * time.Second))); (len(f.Violations) == 0) != excused {
			t.Errorf("%s: late writes excused: %v, expected %v; %v", state, len(f.Violations) == 0, excused, f.Violations)
		}
	}
}

// A way that is held up delivers one write late: what was under way or, over a mute link, the first that was sent after that. A write of a later tick was
// kept.
func TestOneLateWriteOfAHold(t *testing.T) {
	for state, first := range map[string]bool{history.LinkMute: true, history.LinkCut: false} {
		w := newWorld(1, "1")
		w.at(5*sec, func(w *world) {
			w.record("backend", &history.Link{From: history.RoleLoadBalancer, To: history.RoleAPIServer, State: state})
		})
		w.boot()
		v := newFacts(w.finish(10 * sec))
		began := v.network.links[0].at
		held := spans{{began, began.Add(8 * sec)}}
		for after, excused := range map[time.Duration]bool{-sec / 2: true, sec * 4 / 5: first, 3 * sec: false} {
			delivered := map[time.Time]int64{}
			late := write{from: held[0].to, seq: 7}
			if got := wasUnderWay(v, late, began.Add(after), held, delivered); got != excused {
				t.Errorf("%s: probed %v after the hold began: excused %v, expected %v", state, after, got, excused)
			}
			if late.seq++; excused && wasUnderWay(v, late, began.Add(after), held, delivered) {
				t.Errorf("%s: probed %v after the hold began: a second write is excused as well", state, after)
			}
		}
	}
}
