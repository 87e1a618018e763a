package kernel

import (
	"time"

	"k8s.io/utils/clock"
)

// Clock is the virtual time for code that takes a clock. Its timers fire when the simulation gets there; nobody may block on
// one, since the simulation would wait for him.
func (k *Kernel) Clock() clock.WithTicker { return virtual{k} }

type virtual struct{ k *Kernel }

func (c virtual) Now() time.Time                         { return c.k.now }
func (c virtual) Since(t time.Time) time.Duration        { return c.k.now.Sub(t) }
func (c virtual) After(d time.Duration) <-chan time.Time { return c.NewTimer(d).C() }
func (c virtual) Sleep(d time.Duration)                  { _ = c.k.Sleep(d) }
func (c virtual) Tick(d time.Duration) <-chan time.Time  { return c.NewTicker(d).C() }

func (c virtual) NewTimer(d time.Duration) clock.Timer {
	t := &timer{k: c.k, c: make(chan time.Time, 1)}
	t.Reset(d)
	return t
}

func (c virtual) NewTicker(d time.Duration) clock.Ticker {
	t := &timer{k: c.k, c: make(chan time.Time, 1), every: d}
	t.Reset(d)
	return ticker{t}
}

type timer struct {
	k     *Kernel
	c     chan time.Time
	every time.Duration
	next  *Timer
	on    bool
}

func (t *timer) C() <-chan time.Time { return t.c }

func (t *timer) Stop() bool {
	was := t.on
	t.on = false
	t.next.Stop()
	return was
}

func (t *timer) Reset(d time.Duration) bool {
	was := t.Stop()
	t.on = true
	t.next = t.k.After(d, t.fire)
	return was
}

func (t *timer) fire() {
	select {
	case t.c <- t.k.now:
	default: // the one before was not taken
	}
	t.on = false
	if t.every > 0 {
		t.Reset(t.every)
	}
}

type ticker struct{ *timer }

func (t ticker) Stop() { t.timer.Stop() }
