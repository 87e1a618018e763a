package preflight

import (
	"context"
	"time"

	"k8s.io/utils/clock"
)

// Time is how a check waits. That of a simulation is virtual.
type Time interface {
	Now() time.Time
	// Within bounds what is done with a context.
	Within(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc)
	// Pause waits; the error is that of a context that has ended.
	Pause(ctx context.Context, d time.Duration) error
}

// Real is the time of a clock, with contexts that end by the machine's.
func Real(c clock.WithTicker) Time { return real{c} }

type real struct{ clock.WithTicker }

func (real) Within(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, limit)
}

func (r real) Pause(ctx context.Context, d time.Duration) error {
	timer := r.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C():
		return nil
	}
}
