package live

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/kmsharness/kmsharness/harness/cluster"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

// clock sets the clock of nodes, or of the aggregators. What goes by a monotonic clock does not notice: timers, deadlines, leases.
func (fs *faults) clock(_ context.Context, a *scenario.Clock) error {
	by := a.By.Value()
	switch a.Mode {
	case history.ClockBehind:
		by = -by
	case history.ClockRestore:
		by = 0
	}
	memory := fs.e.controlPlane.Traits.Memory
	if a.Role == history.RoleAggregator {
		memory.SetClock(a.Role, "", by)
		fs.e.record(&history.Clock{Role: a.Role, Ahead: by})
		return nil
	}
	nodes, err := fs.e.procs.selectNodes(a.Node, true)
	if err != nil {
		return err
	}
	for _, name := range fs.clocksOf(nodes, by, a.Node == "" || a.Node == scenario.NodeAll) {
		memory.SetClock("", name, by)
		fs.e.record(&history.Clock{Node: name, Ahead: by})
	}
	return nil
}

// clocksOf are the nodes whose clocks are set. To restore those of all nodes is also about one that is just being replaced: its successor has its name,
// and so its clock.
func (fs *faults) clocksOf(nodes []*cluster.Node, by time.Duration, all bool) (names []string) {
	fs.e.mu.Lock()
	defer fs.e.mu.Unlock()
	for _, n := range nodes {
		names = append(names, n.Name)
	}
	switch {
	case by != 0:
		fs.wrong = append(fs.wrong, names...)
	case all:
		names = append(names, fs.wrong...)
		fs.wrong = nil
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// watches lets those of API servers be late, or ends them.
func (fs *faults) watches(_ context.Context, a *scenario.Watches) error {
	node, err := fs.apiServerOf(a.Node)
	if err != nil {
		return err
	}
	memory := fs.e.controlPlane.Traits.Memory
	switch a.Mode {
	case history.WatchesExpired, history.WatchesClosed:
		memory.EndWatches(node, a.Mode == history.WatchesExpired)
		return nil
	}
	late := a.By.Value() // 0 of restore
	fs.e.record(&history.Watches{Node: node, Late: late})
	memory.DelayWatches(node, late)
	return nil
}

// serving changes how API servers serve.
func (fs *faults) serving(_ context.Context, a *scenario.Serving) error {
	node, err := fs.apiServerOf(a.Node)
	if err == nil {
		fs.e.controlPlane.Traits.Memory.Serve(node, a.Mode)
	}
	return err
}

// refuseInMemory puts any refusal in force, or ends it.
func (fs *faults) refuseInMemory(a *scenario.Refuse) error {
	node, err := fs.apiServerOf(a.Node)
	if err != nil {
		return err
	}
	memory := fs.e.controlPlane.Traits.Memory
	if a.Mode == history.RefuseRestore {
		memory.Permit(a.Role, a.Object, node)
		return nil
	}
	r := history.Refusal{Role: a.Role, Object: a.Object, Node: node, Verb: a.Method, Mode: a.Mode, Code: history.RefusalCode(a.Mode)}
	if a.Mode == history.RefuseTooManyRequests {
		r.RetryAfter = time.Duration(cmp.Or(a.RetryAfter, 1)) * time.Second
	}
	inForce := r
	fs.e.record(&inForce) // before the first that is refused
	memory.Refuse(r, a.Count, a.For.Value(), func(over history.Refusal) {
		over.Over = true
		fs.e.record(&over)
	})
	return nil
}

// apiServerOf is the node of the API server that is meant; empty: all.
func (fs *faults) apiServerOf(word string) (string, error) {
	if word == "" || word == scenario.NodeAll {
		return "", nil
	}
	if _, err := fs.e.procs.selectNodes(word, true); err != nil {
		return "", fmt.Errorf("API server: %w", err)
	}
	return word, nil
}
