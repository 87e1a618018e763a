package facts

import (
	"maps"
	"slices"
	"time"

	"github.com/kmsharness/kmsharness/harness/check/span"
	"github.com/kmsharness/kmsharness/harness/history"
)

// LateWatches is a time in which an API server sent the aggregators late what changed.
type LateWatches struct {
	span.Span
	Late time.Duration
}

// lateWatches are when watches were late, by the latest of all API servers: which one an aggregator watches is not known.
func lateWatches(log *Log) (out []LateWatches) {
	late := map[string]time.Duration{}
	for e := range log.Each(history.KindWatches) {
		if e.Watches.Node == "" {
			clear(late)
		}
		late[e.Watches.Node] = e.Watches.Late
		out = span.Append(out, LateWatches{span.New(e.At, log.Period.To), slices.Max(slices.Collect(maps.Values(late)))})
	}
	return slices.DeleteFunc(out, func(l LateWatches) bool { return l.Late == 0 })
}
