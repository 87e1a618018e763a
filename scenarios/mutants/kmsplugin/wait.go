package kmsplugin

import (
	"context"
	"time"
)

// Times that mutants take to be in mid-call.
const (
	shortWait = 30 * time.Millisecond
	longWait  = 200 * time.Millisecond
)

// waitFor waits for a time, or until ctx ends.
func waitFor(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
