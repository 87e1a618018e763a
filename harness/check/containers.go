package check

import (
	"time"

	"github.com/kmsharness/kmsharness/harness/history"
)

// ContainerChange is what a container engine told, for people: no invariant is judged by it.
type ContainerChange struct {
	history.Container
	At     time.Time     `json:"at"`
	Offset time.Duration `json:"offset"`
}

// containers are the first MaxViolations changes, and how many there were.
func (ps *processFacts) containers() (first []ContainerChange, count int) {
	for n := range ps.facts.events {
		e := &ps.facts.events[n]
		if e.Container == nil {
			continue
		}
		if count++; len(first) < MaxViolations {
			first = append(first, ContainerChange{*e.Container, e.At, e.At.Sub(ps.facts.complete.from)})
		}
	}
	return first, count
}
