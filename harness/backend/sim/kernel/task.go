package kernel

import (
	"errors"
	"iter"
	"time"
)

// ErrClosed ends what waits when the simulation ends.
var ErrClosed = errors.New("the simulation has ended")

// task is a thread of control of its own, of which only one runs at a time: it goes on until it waits, and the kernel decides
// when it goes on after that.
type task struct {
	next  func() (struct{}, bool)
	stop  func()
	yield func(struct{}) bool
}

// Go begins a task. It runs at once, until it waits for the first time.
func (k *Kernel) Go(f func()) {
	t := &task{}
	t.next, t.stop = iter.Pull(func(yield func(struct{}) bool) {
		t.yield = yield
		f()
	})
	k.tasks[t] = struct{}{}
	k.run(t)
}

func (k *Kernel) run(t *task) {
	before := k.runs
	k.runs = t
	_, waits := t.next()
	k.runs = before
	if !waits {
		delete(k.tasks, t)
	}
}

// Suspend suspends the caller until start's done was called; done may be called at once, and more than once. A caller that is no
// task lets time pass meanwhile.
func (k *Kernel) Suspend(start func(done func())) error {
	if k.closed {
		return ErrClosed
	}
	over, t := false, k.runs
	start(func() {
		if !over {
			over = true
			if t != nil {
				k.At(k.now, func() { k.run(t) })
			}
		}
	})
	if t != nil {
		if !t.yield(struct{}{}) {
			return ErrClosed
		}
		return nil
	}
	for !over {
		if !k.step(time.Time{}) {
			return errors.New("wait: nothing is left that could happen")
		}
	}
	return nil
}

// Sleep suspends the caller for a time.
func (k *Kernel) Sleep(d time.Duration) error {
	return k.Suspend(func(done func()) { k.After(d, done) })
}

// Join lets time pass until every task has ended.
func (k *Kernel) Join() {
	for len(k.tasks) > 0 && k.step(time.Time{}) {
	}
}

// Close ends all tasks that still wait.
func (k *Kernel) Close() {
	k.closed = true
	for t := range k.tasks {
		t.stop()
	}
	k.tasks, k.queue = map[*task]struct{}{}, queue{}
}
