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
	impairment
}

func newLink(w *world, from, to, node string) *link {
	return &link{w: w, id: history.Link{From: from, To: to, Node: node}, state: history.LinkOK}
}

// silent reports whether messages of a direction, or of some, are lost: a connection needs both.
func (l *link) silent() bool { return l.state == history.LinkCut || l.state == history.LinkMute }

// latency is what a message that is sent now takes.
func (l *link) latency() time.Duration {
	latency := l.w.k.Between(leastLatency, mostLatency)
	if l.state == history.LinkSlow {
		latency += l.delay
	}
	return latency
}

// send brings a message across. While nothing gets through it waits, as TCP's retransmission would have it.
func (l *link) send(direction int, arrive func()) { l.sendIn(nil, 0, direction, smallMessage, arrive) }

// sendTo is send to a process that has to live until then.
func (l *link) sendTo(p *proc, direction int, arrive func()) {
	l.sendIn(p, p.incarnation, direction, smallMessage, arrive)
}

func (l *link) sendIn(scope kernel.Scope, incarnation, direction, bytes int, arrive func()) {
	again := func() { l.sendIn(scope, incarnation, direction, bytes, arrive) }
	if l.loses(direction) {
		l.held = append(l.held, again)
		return
	}
	if l.queues() {
		l.queue(scope, incarnation, direction, bytes, again, arrive)
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
	l.impair(history.Link{State: state, Delay: delay})
}

// impair is set for a fault with other parameters.
func (l *link) impair(f history.Link) {
	f.From, f.To, f.Node = l.id.From, l.id.To, l.id.Node
	l.w.record("backend", &f)
	l.becomeImpaired(f)
}

// become is set for a link that no history names: of a pod that goes with its node.
func (l *link) become(state string, delay time.Duration) {
	l.becomeImpaired(history.Link{State: state, Delay: delay})
}

func (l *link) becomeImpaired(f history.Link) {
	l.state, l.delay, l.direction, l.rate, l.loss = f.State, f.Delay, f.Direction, f.Rate, f.Loss
	queued := l.unqueue()
	if l.silent() {
		l.w.silenced()
		l.resend(queued)
		return
	}
	for _, c := range append([]*conn(nil), l.conns...) {
		if f.State == history.LinkReset || c.unheard {
			c.fail(errReset)
		}
	}
	l.w.healed()
	l.resend(queued)
}

// resend sends again what waited. What the fault that is in force loses waits on.
func (l *link) resend(queued []func()) {
	held := l.held
	l.held = nil
	for _, send := range append(queued, held...) {
		send()
	}
}
