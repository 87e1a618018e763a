package kind

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/kmsharness/kmsharness/harness/backend/live"
	"github.com/kmsharness/kmsharness/harness/history"
)

// loadBalancer is the container that kind puts before several API servers. Where there is one node there is none, and its
// part is played by the API server.
type loadBalancer struct {
	container string
	ip        string // on the nodes' network; empty: there is none
	url       string // on this machine
	http      *http.Client
	tell      func(at time.Time, p history.Process)

	mu    sync.Mutex
	phase live.Phase
}

var _ live.Unit = (*loadBalancer)(nil)

func (l *loadBalancer) do(ctx context.Context, phase live.Phase, state string, args ...string) error {
	if l.ip == "" {
		return fmt.Errorf("there is no load balancer before a single node")
	}
	if _, err := docker(ctx, append(args, l.container)...); err != nil {
		return fmt.Errorf("load balancer: %w", err)
	}
	l.mu.Lock()
	l.phase = phase
	l.mu.Unlock()
	l.tell(time.Now(), history.Process{Role: history.RoleLoadBalancer, State: state})
	return nil
}

// Start implements live.Unit.
func (l *loadBalancer) Start(ctx context.Context) error {
	if l.Status().Lives() {
		return nil
	}
	if err := l.do(ctx, live.Running, history.ProcessStarted, "start"); err != nil {
		return err
	}
	return until(ctx, readyPoll, "start the load balancer", (&server{url: l.url, http: l.http}).ask("/livez"))
}

// Stop implements live.Unit.
func (l *loadBalancer) Stop(ctx context.Context) error {
	return l.do(ctx, live.Ended, history.ProcessStopped, "stop", "--time", "1")
}

// Kill implements live.Unit.
func (l *loadBalancer) Kill(ctx context.Context) error {
	return l.do(ctx, live.Ended, history.ProcessKilled, "kill")
}

// Pause implements live.Unit: the kernel goes on accepting connections, and nobody answers.
func (l *loadBalancer) Pause(ctx context.Context) error {
	return l.do(ctx, live.Paused, history.ProcessPaused, "pause")
}

// Resume implements live.Unit.
func (l *loadBalancer) Resume(ctx context.Context) error {
	return l.do(ctx, live.Running, history.ProcessResumed, "unpause")
}

// Status implements live.Unit.
func (l *loadBalancer) Status() live.Status {
	l.mu.Lock()
	defer l.mu.Unlock()
	return live.Status{Phase: l.phase}
}
