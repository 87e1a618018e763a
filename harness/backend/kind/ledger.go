package kind

import (
	"slices"
	"strings"
	"sync"

	"github.com/kmsharness/kmsharness/harness/history"
)

// ledger knows what was told last of every unit below hold. A hold that dies with its container cannot tell that its program
// did; who ended the container finds here whom that concerns. The zero value is empty.
type ledger struct {
	mu   sync.Mutex
	last map[unitOn]history.Process
}

// unitOn is a unit of a node.
type unitOn struct{ node, unit string }

// note keeps what is told of a unit.
func (l *ledger) note(k unitOn, p history.Process) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last == nil {
		l.last = map[unitOn]history.Process{}
	}
	l.last[k] = p
}

// forget drops a node that is gone.
func (l *ledger) forget(node string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for k := range l.last {
		if k.node == node {
			delete(l.last, k)
		}
	}
}

// entry is a unit with what was told of it last.
type entry struct {
	unitOn
	process history.Process
}

// living are the units of a node that have a process, sorted by name.
func (l *ledger) living(node string) []entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []entry
	for k, p := range l.last {
		if k.node == node && lives(p.State) {
			all = append(all, entry{k, p})
		}
	}
	slices.SortFunc(all, func(a, b entry) int { return strings.Compare(a.unit, b.unit) })
	return all
}

// lives says whether a process of which this was told last exists.
func lives(state string) bool {
	switch state {
	case history.ProcessStarted, history.ProcessReady, history.ProcessPaused, history.ProcessResumed:
		return true
	}
	return false
}

// inPod says whether a unit is in the API server's pod; the others of a node are aggregators.
func inPod(unit string) bool {
	return unit == unitAPIServer || unit == unitReporter || strings.HasPrefix(unit, unitOfPlugin(""))
}
