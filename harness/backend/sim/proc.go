package sim

import (
	"time"

	"github.com/kmsharness/kmsharness/harness/backend/sim/kernel"
	"github.com/kmsharness/kmsharness/harness/history"
)

// phase of a process. Whether it stands still is apart from that.
type phase int

const (
	down phase = iota
	starting
	running
	draining // it was asked to end and takes nothing new
)

// proc is a process: what it does happens only while it lives, and waits while it stands still.
type proc struct {
	w           *world
	id          history.Process
	phase       phase
	paused      bool
	incarnation int      // counts starts and ends, so that what was planned in one life does not happen in another
	held        []func() // what would have happened while it stood still
	ready       []func() // who waits until it answers

	init func()             // it has just started, and knows nothing yet
	boot func(ready func()) // from its start until it answers
	up   func()             // it answers
	gone func()             // it has just ended, one way or another
	term func(ended func()) // it was asked to end; nil: it ends soon
}

func (p *proc) running() bool { return p.phase != down }
func (p *proc) runs() bool    { return p.phase == running && !p.paused }

// bind makes something that happens in this life of the process or never, and not while it stands still.
func (p *proc) bind(f func()) func() { return p.bindTo(p.incarnation, f) }

// bindTo is bind for what began in a life that may have ended: its end breaks connections, and nobody is there to hear of it.
func (p *proc) bindTo(incarnation int, f func()) func() {
	return func() { p.Enter(incarnation, f) }
}

// Enter implements kernel.Scope.
func (p *proc) Enter(incarnation int, f func()) {
	switch {
	case p.incarnation != incarnation:
	case p.paused:
		p.held = append(p.held, p.bindTo(incarnation, f))
	default:
		f()
	}
}

// at is bind for an instant, and after for one that is as far away.
func (p *proc) at(at time.Time, f func()) *kernel.Timer { return p.w.k.AtIn(at, p, p.incarnation, f) }

func (p *proc) after(d time.Duration, f func()) *kernel.Timer { return p.at(p.w.k.Now().Add(d), f) }

// start starts it unless it lives, and calls then once it answers.
func (p *proc) start(then func()) {
	if p.phase == running || p.phase == draining {
		then()
		return
	}
	p.ready = append(p.ready, then)
	if p.phase == starting {
		return
	}
	p.begin("")
	p.boot(p.bind(func() { p.answers("") }))
}

// existed makes it one that ran before this scenario began.
func (p *proc) existed() {
	const before = "it ran before this scenario began"
	p.begin(before)
	p.answers(before)
}

func (p *proc) begin(detail string) {
	p.incarnation++
	p.w.pids++
	p.phase, p.id.PID = starting, p.w.pids
	p.writeConfig(history.ProcessStarted, detail)
	if p.init != nil {
		p.init()
	}
}

func (p *proc) answers(detail string) {
	p.phase = running
	p.writeConfig(history.ProcessReady, detail)
	if p.up != nil {
		p.up()
	}
	p.release()
}

// stop asks it to end, and calls then when it has.
func (p *proc) stop(then func()) {
	if p.phase == down {
		then()
		return
	}
	p.resume()
	ended := p.bind(func() { p.end(history.ProcessStopped, ""); then() })
	if p.term != nil {
		p.term(ended)
		return
	}
	p.w.k.After(p.w.k.Between(time.Millisecond, 10*time.Millisecond), ended)
}

// release lets go on who waits for an answer.
func (p *proc) release() {
	waiting := p.ready
	p.ready = nil
	for _, then := range waiting {
		then()
	}
}

// end ends it at once.
func (p *proc) end(state, detail string) {
	if p.phase == down {
		return
	}
	p.incarnation++
	p.phase, p.paused, p.held = down, false, nil
	if p.gone != nil {
		p.gone()
	}
	p.writeConfig(state, detail)
	p.release()
}

func (p *proc) pause() {
	if p.phase == down || p.paused {
		return
	}
	p.paused = true
	p.writeConfig(history.ProcessPaused, "")
	p.w.silenced()
}

func (p *proc) resume() {
	if !p.paused {
		return
	}
	p.paused = false
	p.writeConfig(history.ProcessResumed, "")
	p.w.healed()
	held := p.held
	p.held = nil
	for _, f := range held {
		p.w.k.After(0, f)
	}
}

func (p *proc) writeConfig(state, detail string) {
	id := p.id
	id.State, id.Detail = state, detail
	p.w.record("backend", &id)
}
