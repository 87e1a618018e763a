package local

import (
	"time"

	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/process"
)

// register makes the changes of processes of a name known under an identity.
func (p *plane) register(identity history.Process, name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.names[name] = identity
}

// newChild makes a place for a process of this plane.
func (p *plane) newChild(c *child) *child {
	c.supervisor = p.supervisor
	p.register(c.identity, nameOf(c.identity))
	return c
}

// changed is told by the supervisor what happens to processes.
func (p *plane) changed(c process.Change) {
	p.mu.Lock()
	identity, known := p.names[c.Name]
	listener := p.listener
	p.mu.Unlock()
	if !known || listener == nil {
		return
	}
	identity.PID, identity.State = c.PID, stateAfter(c)
	if c.Exit != nil {
		identity.Detail = c.Exit.String()
	}
	listener(c.Time, &identity)
}

// stateAfter is the history's word for a change.
func stateAfter(c process.Change) string {
	switch c.Cause {
	case process.CauseStart:
		return history.ProcessStarted
	case process.CausePause:
		return history.ProcessPaused
	case process.CauseResume:
		return history.ProcessResumed
	case process.CauseStop:
		return history.ProcessStopped
	case process.CauseKill:
		return history.ProcessKilled
	default:
		return history.ProcessExited
	}
}

// listen passes changes of processes on; nil ends it.
func (p *plane) listen(f func(at time.Time, p *history.Process)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.listener = f
}
