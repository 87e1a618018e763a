package netfault

import (
	"context"
	"sync"
	"time"
)

// control is the fault in force on one link or member, and the connections that it governs.
type control struct {
	mu      sync.Mutex
	fault   Fault
	changed chan struct{} // closed and replaced at every change
	closed  bool
	ends    map[end]struct{}
}

// end is a connection that a control governs.
type end interface {
	reset()
}

func newControl() *control {
	return &control{fault: Fault{Mode: OK}, changed: make(chan struct{}), ends: map[end]struct{}{}}
}

func (c *control) get() (Fault, <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.fault, c.changed
}

// set puts a fault in force for connections that exist and new ones.
func (c *control) set(f Fault) error {
	if err := f.Validate(); err != nil {
		return err
	}
	if f.Mode == "" {
		f.Mode = OK
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fault = f
	close(c.changed)
	c.changed = make(chan struct{})
	for e := range c.ends {
		if _, held := e.(*heldConn); !f.admits() || held && !f.mutes() {
			e.reset()
		}
	}
	return nil
}

// close resets all connections and admits no more.
func (c *control) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for e := range c.ends {
		e.reset()
	}
}

// admit registers a connection while the fault allows it; false if it may not live, which the caller answers with a reset.
func (c *control) admit(e end, allows func(Fault) bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || !allows(c.fault) {
		return false
	}
	c.ends[e] = struct{}{}
	return true
}

func (c *control) forget(e end) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.ends, e)
}

func (c *control) connections() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.ends)
}

// waitWhile blocks as long as the fault satisfies the condition; it returns the first one that does not, or the error of
// ctx.
func (c *control) waitWhile(ctx context.Context, condition func(Fault) bool) (Fault, error) {
	for {
		f, changed := c.get()
		if !condition(f) {
			return f, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return f, ctx.Err()
		}
	}
}

// pass blocks until bytes that were read at the given time may go on: not while the link is silent, and not before the
// delay is over. It ends early when the connection does.
func (c *control) pass(read time.Time, dead <-chan struct{}) {
	for {
		f, changed := c.get()
		due := time.Until(read.Add(f.Delay))
		if !f.silent() && due <= 0 {
			return
		}
		var timer *time.Timer
		var elapsed <-chan time.Time
		if !f.silent() {
			timer = time.NewTimer(due)
			elapsed = timer.C
		}
		select {
		case <-changed:
		case <-elapsed:
		case <-dead:
			return
		}
		if timer != nil {
			timer.Stop()
		}
	}
}
