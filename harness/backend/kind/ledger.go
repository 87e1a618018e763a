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

// unitOn is a unit by the folder of this machine that its files are in.
type unitOn struct{ dir, unit string }

// note keeps what is told of a unit.
func (l *ledger) note(k unitOn, p history.Process) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last == nil {
		l.last = map[unitOn]history.Process{}
	}
	l.last[k] = p
}

// forget drops the units of a folder that is gone.
func (l *ledger) forget(dir string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for k := range l.last {
		if k.dir == dir {
			delete(l.last, k)
		}
	}
}

// entry is a unit with what was told of it last.
type entry struct {
	unitOn
	process history.Process
}

// living are the units, of those that are meant, that have a process, sorted by name.
func (l *ledger) living(meant func(unitOn) bool) []entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []entry
	for k, p := range l.last {
		if lives(p.State) && meant(k) {
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

// livingIn are the units of the pod of an API server on a node that have a process.
func (p *plane) livingIn(node, apiServer string) []entry {
	dir := p.layout.node(node).pod(apiServer).dir
	return p.ledger.living(func(k unitOn) bool { return k.dir == dir && inPod(k.unit) })
}

// living are the units on a node that have a process: those of its API servers' pods, and the aggregators whose pods are there.
func (p *plane) living(node string) []entry {
	own := []string{p.layout.node(node).state()}
	for _, f := range p.fleets {
		own = append(own, p.layout.node(node).pod(f.Stand.APIServer).dir)
	}
	there := map[string]bool{}
	for _, s := range p.allSeats() {
		if pod, at := s.pod(); at == node {
			there[unitOfAggregator(pod)] = true
		}
	}
	return p.ledger.living(func(k unitOn) bool { return slices.Contains(own, k.dir) || k.dir == p.layout.shared() && there[k.unit] })
}
