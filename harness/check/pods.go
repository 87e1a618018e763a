package check

import (
	"time"

	"github.com/kmsharness/kmsharness/harness/history"
)

// revised reports whether an event says that the pod of an API server was replaced.
func revised(e *history.Event) bool {
	return e.Container != nil && e.Container.State == history.PodRevised
}

// revising is when the pod of a node's API server was replaced: from the end of the old API server until everything in the new pod ran.
func (ps *processFacts) revising(node string) spans {
	var all []span
	for n := range ps.facts.events {
		e := &ps.facts.events[n]
		if !revised(e) || e.Container.Node != node {
			continue
		}
		var began time.Time
		before := procUp
		for _, c := range ps.procs[process{role: encryptor(ps.facts), node: node}] {
			if c.at.After(e.At) {
				break
			}
			if c.state == procDown && before != procDown {
				began = c.at
			}
			before = c.state
		}
		if !began.IsZero() {
			all = append(all, span{began, e.At})
		}
	}
	return merged(all)
}
