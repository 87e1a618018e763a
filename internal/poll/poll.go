// Package poll waits: for a time, for ticks, and until the answer to a question is yes. It has no dependencies, because some programs are copied into every container.
package poll

import (
	"context"
	"time"
)

// Until calls done at once and then at every interval until it returns true, an error, or ctx ends, whose cause it returns then.
func Until(ctx context.Context, every time.Duration, done func() (bool, error)) error {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		if ok, err := done(); ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ticker.C:
		}
	}
}

// Pause waits, or returns why ctx ended before.
func Pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Each calls do at every tick until ctx ends.
func Each(ctx context.Context, ticks <-chan time.Time, do func()) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks:
			do()
		}
	}
}
