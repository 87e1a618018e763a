package virtual

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/kmsharness/kmsharness/harness/cluster"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/netfault"
	"github.com/kmsharness/kmsharness/internal/poll"
)

// etcd is the one member: the store itself, which API servers reach or not. Its content stays. While it is paused or has
// ended, requests wait until their time-out, because the client of an API server reconnects for as long. There is no
// quorum and no election on sim.
type etcd struct {
	cluster.Phases
	machine *machine

	mu      sync.Mutex
	phase   cluster.Phase
	changed chan struct{} // is closed when it comes or goes, or a link changes
}

var _ cluster.Unit = (*etcd)(nil)

func newEtcd(m *machine) *etcd {
	e := &etcd{machine: m, changed: make(chan struct{})}
	e.Phases = e.become
	return e
}

func (e *etcd) become(_ context.Context, p cluster.Phase, state string) error {
	e.mu.Lock()
	was := e.phase
	e.phase = p
	e.mu.Unlock()
	if was != p {
		e.wake()
		e.machine.Record(time.Now(), history.Process{Role: history.RoleEtcd, State: state})
	}
	return nil
}

// wake lets all waiting requests check again whether they reach it.
func (e *etcd) wake() {
	e.mu.Lock()
	defer e.mu.Unlock()
	close(e.changed)
	e.changed = make(chan struct{})
}

func (e *etcd) Status() cluster.Status {
	e.mu.Lock()
	defer e.mu.Unlock()
	return cluster.Status{Phase: e.phase}
}

// state is whether it runs, and what is closed when that changes.
func (e *etcd) state() (runs bool, changed <-chan struct{}) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.phase == cluster.Running, e.changed
}

// SetEtcdLink puts a fault in force between the API server and etcd. A link that is slow delays every request; any other fault keeps it from etcd.
func (s *server) SetEtcdLink(f netfault.Fault) error {
	s.mu.Lock()
	s.toEtcd = f
	s.mu.Unlock()
	s.cluster.etcd.wake()
	return nil
}

// storage returns when the API server reaches etcd. A slow link costs a request one round trip, twice its delay.
func (s *server) storage(ctx context.Context) error {
	for {
		s.mu.Lock()
		f := s.toEtcd
		s.mu.Unlock()
		runs, changed := s.cluster.etcd.state()
		away := f.Mode == netfault.Cut || f.Mode == netfault.Reset || f.Mode == netfault.Mute
		switch {
		case runs && !away && f.Mode != netfault.Slow:
			return nil
		case runs && !away:
			if err := poll.Pause(ctx, 2*f.Delay); err != nil {
				return fmt.Errorf("etcd: %w", err)
			}
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("etcd: %w", ctx.Err())
		}
	}
}
