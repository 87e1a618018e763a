package sim

import (
	"time"

	"github.com/kmsharness/kmsharness/harness/backend/sim/kernel"
	"github.com/kmsharness/kmsharness/harness/history"
)

// How long a message takes on a link that is well: two processes of one machine, or two machines of one rack.
const (
	leastLatency = 60 * time.Microsecond
	mostLatency  = 400 * time.Microsecond
)

// link is one way of the network, with at most one fault.
type link struct {
	w     *world
	id    history.Link
	state string
	delay time.Duration
	last  [2]time.Time // of each direction: nothing overtakes
	held  []func()     // what was sent while nothing got through
	conns []*conn
}

func newLink(w *world, from, to, node string) *link {
	return &link{w: w, id: history.Link{From: from, To: to, Node: node}, state: history.LinkOK}
}

func (l *link) silent() bool { return l.state == history.LinkCut || l.state == history.LinkMute }

// latency is what a message that is sent now takes.
func (l *link) latency() time.Duration { return l.w.k.Between(leastLatency, mostLatency) + l.delay }

// send brings a message across. While nothing gets through it waits, as TCP's retransmission would have it.
func (l *link) send(direction int, arrive func()) { l.sendIn(nil, 0, direction, arrive) }

// sendTo is send to a process that has to live until then.
func (l *link) sendTo(p *proc, direction int, arrive func()) {
	l.sendIn(p, p.incarnation, direction, arrive)
}

func (l *link) sendIn(scope kernel.Scope, incarnation, direction int, arrive func()) {
	if l.silent() {
		l.held = append(l.held, func() { l.sendIn(scope, incarnation, direction, arrive) })
		return
	}
	at := l.w.k.Now().Add(l.latency())
	if at.Before(l.last[direction]) {
		at = l.last[direction]
	}
	l.last[direction] = at
	l.w.k.AtIn(at, scope, incarnation, arrive)
}

// set puts a fault in force, or ends it.
func (l *link) set(state string, delay time.Duration) {
	configured := l.id
	configured.State, configured.Delay = state, delay
	l.w.record("backend", &configured)
	l.become(state, delay)
}

// become is set for a link that no history names: of a pod that goes with its node.
func (l *link) become(state string, delay time.Duration) {
	l.state, l.delay = state, delay
	if l.silent() {
		l.w.silenced()
		return
	}
	for _, c := range append([]*conn(nil), l.conns...) {
		if state == history.LinkReset || c.unheard {
			c.fail(errReset)
		}
	}
	l.w.healed()
	held := l.held
	l.held = nil
	for _, send := range held {
		send()
	}
}
