package check

import (
	"time"

	"github.com/kmsharness/kmsharness/harness/history"
)

// revised reports whether an event says that the pod of an API server was replaced.
func revised(e *history.Event) bool {
	return e.Container != nil && e.Container.State == history.PodRevised
}

// revising is when the pod of a node's API server was replaced: from the end of the old API server until everything in the new pod ran, or until the run
// ended.
func (ps *processFacts) revising(node string) spans {
	var all []span
	var asked time.Time // to end, by no action, and no pod has come since
	for n := range ps.facts.events {
		e := &ps.facts.events[n]
		if p := e.Process; p != nil && p.Role == encryptor(ps.facts) && p.Node == node {
			switch {
			case p.State == history.ProcessStopping && !handled(ps.facts, e.At):
				asked = e.At
			case p.State == history.ProcessReady:
				asked = time.Time{}
			}
		}
		if !revised(e) || e.Container.Node != node {
			continue
		}
		asked = time.Time{}
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
	if !asked.IsZero() {
		all = append(all, span{asked, ps.facts.complete.to})
	}
	return merged(all)
}
