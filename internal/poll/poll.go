// Package poll repeats a question until its answer is yes. It has no dependencies, because some programs are copied into every container.
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
