package sim

import (
	"context"
	"fmt"
	"time"

	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

// clock sets the clock of nodes, or of the aggregators. What runs by a monotonic clock does not notice: timers, deadlines, leases,
// and the keys of API servers. What an API server writes into objects by itself, such as when they were made, is by the clock of its node.
func (fs *faults) clock(_ context.Context, a *scenario.Clock) error {
	by := a.By.Value()
	switch mode := a.Mode; mode {
	case history.ClockAhead:
	case history.ClockBehind:
		by = -by
	case history.ClockRestore:
		by = 0
	default:
		return fmt.Errorf("mode %q: expected ahead, behind or restore", mode)
	}
	if a.Role == history.RoleAggregator {
		fs.w.ahead = by
		fs.w.record("backend", &history.Clock{Role: history.RoleAggregator, Ahead: by})
		return nil
	}
	nodes, err := fs.e.procs.selectNodes(a.Node, true)
	if err != nil {
		return err
	}
	for _, n := range nodes {
		n.ahead = by
		fs.w.record("backend", &history.Clock{Node: n.name, Ahead: by})
	}
	return nil
}

// clock is the time as a node's reporter reads it.
func (n *node) clock() time.Time {
	return n.w.k.Now().Add(n.base().ahead)
}

// clock is the time as an aggregator reads it.
func (a *aggregator) clock() time.Time { return a.w.k.Now().Add(a.w.ahead) }
