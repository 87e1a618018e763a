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
	pairs   map[*pair]struct{}
}

func newControl() *control {
	return &control{fault: Fault{Mode: OK}, changed: make(chan struct{}), pairs: map[*pair]struct{}{}}
}

func (c *control) get() (Fault, <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.fault, c.changed
}

// set puts a fault in force for connections that exist and new ones.
func (c *control) set(f Fault) error {
	if err := f.validate(); err != nil {
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
	if f.Mode == Reset {
		c.resetAll()
	}
	return nil
}

// close resets all connections and admits no more.
func (c *control) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	c.resetAll()
}

func (c *control) resetAll() {
	for p := range c.pairs {
		p.reset()
	}
}

// admit registers a connection; false if it may not live, which the caller answers with a reset.
func (c *control) admit(p *pair) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || c.fault.Mode == Reset {
		return false
	}
	c.pairs[p] = struct{}{}
	return true
}

func (c *control) forget(p *pair) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.pairs, p)
}

func (c *control) connections() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.pairs)
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
