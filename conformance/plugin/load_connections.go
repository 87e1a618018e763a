package plugin

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// Numbers of connections.
const (
	shortConnections = 200 // opened, used and closed
	atOnce           = 10  // of these
	openAtOnce       = 100 // left open
)

func churn(ctx context.Context, p *Plugin) error {
	n, err := useConnections(ctx, p)
	if err != nil {
		return found(fmt.Sprintf("Status on a new connection, after %d were opened and closed", n), err, "a response")
	}
	p.Measure("%d connections", n)
	return nil
}

// useConnections opens connections, calls Status on each and closes it. It returns how many were served.
func useConnections(ctx context.Context, p *Plugin) (int, error) {
	var served atomic.Int64
	began := time.Now()
	var callers errgroup.Group
	for range atOnce {
		callers.Go(func() error {
			for range shortConnections / atOnce {
				if time.Since(began) > p.timing.Load/2 {
					return nil
				}
				if _, err := p.statusOnNew(ctx); err != nil {
					return err
				}
				served.Add(1)
			}
			return nil
		})
	}
	err := callers.Wait()
	return int(served.Load()), err
}

func openConnections(ctx context.Context, p *Plugin) error {
	for i := range openAtOnce {
		f, err := dialFrames(ctx, p)
		if err != nil {
			return found(fmt.Sprintf("connection %d of %d", i+1, openAtOnce), err, "a connection")
		}
		defer f.Close()
	}
	return othersServed(ctx, p, fmt.Sprintf("while %d are open", openAtOnce))
}

// spareDescriptors is how many descriptors more than before a plugin may have for reasons of its own.
const spareDescriptors = 20

func closedConnections(ctx context.Context, p *Plugin) error {
	pid := need(p.PID(ctx))
	before := need(countDescriptors(pid))
	n, err := useConnections(ctx, p)
	if err != nil {
		return found("Status on a new connection", err, "a response")
	}
	var after int
	_, freed := p.Poll(ctx, 20*time.Millisecond, p.timing.Call, func(context.Context) bool {
		after, err = countDescriptors(pid)
		return err != nil || after <= before+spareDescriptors
	})
	p.Measure("descriptors: %d before, %d after %d connections", before, after, n)
	must(err)
	if !freed {
		return found(fmt.Sprintf("%d connections, opened and closed", n), fmt.Sprintf("%d open descriptors %v later, %d before", after, p.timing.Call, before), fmt.Sprintf("at most %d", before+spareDescriptors))
	}
	return nil
}

// unread is how many answers the client of the check does not read.
const unread = 300

func slowReader(ctx context.Context, p *Plugin) error {
	began := time.Now()
	need(p.answer(ctx, "Status"))
	n := max(1, min(unread, int(p.timing.Call/4/max(time.Since(began), time.Microsecond)))) // more would keep a slow plugin busy
	f := need(dialFrames(ctx, p))
	defer f.Close()
	for range n {
		if _, err := f.status(); err != nil {
			break // the plugin reads no more, or has closed the connection: both are allowed
		}
	}
	p.Measure("%d answers are not read", n)
	return othersServed(ctx, p, fmt.Sprintf("while a client does not read %d answers", n))
}
