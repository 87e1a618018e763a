// Package canary records whether an API server can write: it writes a small object of its own through it, again and again.
//
// Where etcd has several members, an election or a member that joins stops all writes for seconds although every process
// runs. No reporter is to blame for that, and no journal tells of it. What lives here: the writing and the change from
// success to failure and back, recorded as the link from the API server to etcd, which is what it is worth. What does not:
// writes of the system under test.
package canary

import (
	"context"
	"time"

	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/record"
)

// Source in the history.
const Source = "canary"

// Canary of one API server.
type Canary struct {
	Sink record.Sink
	Node string
	// Write makes one write and returns when it was answered; an error is one that was not made, or not in time.
	Write func(context.Context) error
	// Timeout of a write. One that takes longer is as good as none to those who have deadlines of their own.
	Timeout time.Duration
	Now     func() time.Time

	broken bool
}

// Run writes at every tick until ctx ends. What it said of a link ends with it.
func (c *Canary) Run(ctx context.Context, tick <-chan time.Time) {
	for {
		select {
		case <-tick:
			c.once(ctx)
		case <-ctx.Done():
			if c.broken {
				c.record(c.Now(), history.LinkOK)
			}
			return
		}
	}
}

// once records a failure at the instant at which the write began: since then, nobody's writes were answered.
func (c *Canary) once(ctx context.Context) {
	began := c.Now()
	writing, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	err := c.Write(writing)
	switch {
	case ctx.Err() != nil: // the run is over, which says nothing
	case err != nil && !c.broken:
		c.record(began, history.LinkCut)
	case err == nil && c.broken:
		c.record(c.Now(), history.LinkOK)
	}
}

func (c *Canary) record(at time.Time, state string) {
	c.broken = state == history.LinkCut
	c.Sink.Record(at, Source, &history.Link{From: history.RoleAPIServer, To: history.RoleEtcd, Node: c.Node, State: state})
}
