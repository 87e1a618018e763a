// Package canary records whether an API server can write: it repeatedly writes a small object of its own through it.
//
// If etcd has several members, an election or a joining member stops all writes for seconds although every process
// runs. No reporter causes this, and no journal records it. The package writes the object, and records a change from
// success to failure and back as a change of the link from the API server to etcd, which has the same effect. It does
// not write for the system under test.
package canary

import (
	"context"
	"time"

	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/record"
	"github.com/kmsharness/kmsharness/internal/poll"
)

// Source in the history.
const Source = "canary"

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
	poll.Each(ctx, tick, func() { c.once(ctx) })
	if c.broken {
		c.record(c.Now(), history.LinkOK)
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
