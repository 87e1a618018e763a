package kernel

import (
	"math"
	"math/rand/v2"
	"time"
)

// Kernel is one simulation. It is not safe for concurrent use.
type Kernel struct {
	start  time.Time
	now    time.Time
	queue  queue
	seq    uint64
	rng    *rand.Rand
	woken  bool
	tasks  map[*task]struct{}
	runs   *task // the task that runs now; nil between tasks
	closed bool
	events uint64
	timers []Timer // not used yet
}

// New is a simulation that begins at start. The same seed gives the same draws.
func New(start time.Time, seed int64) *Kernel {
	return &Kernel{start: start, now: start, rng: rand.New(rand.NewPCG(uint64(seed), 0x6b6d73)), tasks: map[*task]struct{}{}}
}

// Now is the virtual instant.
func (k *Kernel) Now() time.Time { return k.now }

// Rand is the one source of randomness.
func (k *Kernel) Rand() *rand.Rand { return k.rng }

// Between draws a duration in [least, most].
func (k *Kernel) Between(least, most time.Duration) time.Duration {
	if most <= least {
		return least
	}
	return least + time.Duration(k.rng.Int64N(int64(most-least)+1))
}

// Events is how many events have run.
func (k *Kernel) Events() uint64 { return k.events }

// At runs f at an instant; one that is over already means now, after what is due now.
func (k *Kernel) At(at time.Time, f func()) *Timer { return k.AtIn(at, nil, 0, f) }

// Scope is what something belongs to that will happen, such as a process that may have ended by then.
type Scope interface {
	// Enter runs f, keeps it for later or drops it: life is the one in which f was planned.
	Enter(incarnation int, f func())
}

// AtIn is At for what a scope decides about when the instant has come; nil runs it in any case.
func (k *Kernel) AtIn(at time.Time, scope Scope, incarnation int, f func()) *Timer {
	if at.Before(k.now) {
		at = k.now
	}
	k.seq++
	t := k.timer()
	t.event = event{due: int64(at.Sub(k.start)), seq: k.seq, f: f, scope: scope, incarnation: incarnation}
	k.queue.push(&t.event)
	return t
}

// slab is how many timers are made at once: most of what a simulation makes are timers.
const slab = 64

func (k *Kernel) timer() *Timer {
	if len(k.timers) == 0 {
		k.timers = make([]Timer, slab)
	}
	t := &k.timers[0]
	k.timers = k.timers[1:]
	return t
}

// After runs f when d has passed.
func (k *Kernel) After(d time.Duration, f func()) *Timer { return k.At(k.now.Add(d), f) }

// Timer is something that will run.
type Timer struct{ event event }

// Stop makes sure that it does not run. It is safe on nil, and for a timer that has run.
func (t *Timer) Stop() {
	if t != nil {
		t.event.f = nil
	}
}

// step runs the next event; false if there is none, or none until limit (zero: without limit).
func (k *Kernel) step(limit time.Time) bool {
	last := int64(math.MaxInt64)
	if !limit.IsZero() {
		last = int64(limit.Sub(k.start))
	}
	for {
		e := k.queue.peek()
		if e == nil || e.due > last {
			return false
		}
		k.queue.pop()
		if e.f == nil {
			continue // stopped
		}
		k.now = k.start.Add(time.Duration(e.due))
		k.events++
		e.happen()
		return true
	}
}

// RunUntil runs everything that is due until an instant, and lets the clock reach it.
func (k *Kernel) RunUntil(at time.Time) {
	for k.step(at) {
	}
	if at.After(k.now) {
		k.now = at
	}
}
