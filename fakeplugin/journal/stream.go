package journal

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
)

// Query selects what a reader wants of a log.
type Query struct {
	After  uint64 // only entries with a higher number
	Limit  int    // at most so many; 0 is all
	Follow bool   // go on with new entries until ctx ends
}

// Stream writes the selected entries to w as JSON lines and calls flush, if not nil, whenever it has nothing more to
// write for now. It returns nil when ctx ends: that is how a follower leaves.
func Stream[T Entry[T]](ctx context.Context, l *Log[T], q Query, keep func(T) bool, w io.Writer, flush func()) error {
	left := q.Limit
	if left <= 0 {
		left = math.MaxInt
	}
	enc := json.NewEncoder(w)
	for left > 0 {
		var entries []T
		entries, q.After = l.After(q.After, math.MaxInt)
		for _, entry := range entries {
			if left == 0 || (keep != nil && !keep(entry)) {
				continue
			}
			if err := enc.Encode(entry); err != nil {
				return fmt.Errorf("stream the journal: %w", err)
			}
			left--
		}
		if flush != nil {
			flush()
		}
		if !q.Follow || l.Wait(ctx, q.After) != nil {
			return nil
		}
	}
	return nil
}
