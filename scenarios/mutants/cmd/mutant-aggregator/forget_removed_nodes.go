package main

import (
	"maps"
	"time"

	"github.com/kmsharness/kmsharness/aggregator/core"
)

// neverForget adds nodes to its set and never takes one out, as a handler does that has an add and an update function
// and no delete function. A removed node stays expected: its report is never cleaned up, and is counted until it is
// stale and for ever after. The function belongs to one aggregator and is called by one goroutine.
func neverForget() func(core.Input, core.Memory) core.Decision {
	nodes := map[string]time.Time{}
	return func(in core.Input, m core.Memory) core.Decision {
		maps.Copy(nodes, in.Nodes)
		in.Nodes = maps.Clone(nodes)
		return core.Step(in, m)
	}
}
