package netfault

import (
	"cmp"
	"context"
	"hash/fnv"
	"math/rand/v2"
	"sync"
	"time"
)

// control is the fault in force on one link or member, and the connections that it governs.
type control struct {
	mu      sync.Mutex
	fault   Fault
	since   time.Time     // when it was put in force
	changed chan struct{} // closed and replaced at every change
	closed  bool
	ends    map[end]struct{}
	free    map[Direction]time.Time // when a throttled link has carried what was sent
	random  *rand.Rand
}

// end is a connection that a control governs.
type end interface {
	reset()
}

// newControl makes a control in mode OK. The segments that it loses are drawn from its name, so that runs lose the same ones.
func newControl(name string) *control {
	seed := fnv.New64a()
	_, _ = seed.Write([]byte(name)) // never fails
	return &control{fault: Fault{Mode: OK}, changed: make(chan struct{}), ends: map[end]struct{}{}, free: map[Direction]time.Time{},
		random: rand.New(rand.NewPCG(seed.Sum64(), 0))}
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
	f.Mode = cmp.Or(f.Mode, OK)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fault, c.since = f, time.Now()
	clear(c.free)
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

// established is waitWhile for a new connection: until packets that establish it get through.
func (c *control) established(ctx context.Context) (Fault, error) {
	for {
		if f, err := c.waitWhile(ctx, Fault.unheard); err != nil {
			return f, err
		}
		f, changed := c.get()
		if !f.unheard() && elapsed(ctx.Done(), changed, c.repeated(f, handshakeTimeout, 2)) {
			return f, ctx.Err()
		}
	}
}

// elapsed waits for some time; false if the fault changed first. It ends early when done does.
func elapsed(done, changed <-chan struct{}, wait time.Duration) bool {
	if wait <= 0 {
		return true
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-done:
		return true
	case <-changed:
		return false
	}
}

// pass blocks until a piece of a connection's bytes may go on: as long as the link is silent, and then as long as the fault delays it. It
// ends early when the connection does.
func (c *control) pass(p piece, dead <-chan struct{}) {
	for {
		f, changed := c.get()
		if f.silent(p.direction) {
			select {
			case <-changed:
			case <-dead:
				return
			}
			continue
		}
		if !elapsed(dead, changed, c.delay(f, p)) {
			continue
		}
		if now, _ := c.get(); now == f {
			return
		}
	}
}
