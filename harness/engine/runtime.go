package engine

import (
	"context"
	"time"

	"k8s.io/utils/clock"
)

// Runtime is how the engine reads time and lets it pass. A simulator implements it with its own clock: Wait then runs
// the model until something is recorded or the instant is reached, and Go calls f at once.
type Runtime interface {
	// Now is the current instant.
	Now() time.Time
	// Go runs f beside the engine; f returns when its context ends.
	Go(f func())
	// Wait returns when Wake was called since it last returned, at until (if that is not zero), or when ctx ends.
	Wait(ctx context.Context, until time.Time)
	// Wake ends the current Wait, or the next. It must not block: it is called under the history's lock.
	Wake()
}

// RealTime is a Runtime of goroutines and a clock.
func RealTime(c clock.Clock) Runtime {
	return &realTime{clock: c, wake: make(chan struct{}, 1)}
}

type realTime struct {
	clock clock.Clock
	wake  chan struct{}
}

func (r *realTime) Now() time.Time { return r.clock.Now() }

func (r *realTime) Go(f func()) { go f() }

func (r *realTime) Wake() {
	select {
	case r.wake <- struct{}{}:
	default: // one is pending, which is enough
	}
}

func (r *realTime) Wait(ctx context.Context, until time.Time) {
	var due <-chan time.Time
	if !until.IsZero() {
		left := until.Sub(r.clock.Now())
		if left <= 0 {
			return
		}
		timer := r.clock.NewTimer(left)
		defer timer.Stop()
		due = timer.C()
	}
	select {
	case <-r.wake:
	case <-due:
	case <-ctx.Done():
	}
}
