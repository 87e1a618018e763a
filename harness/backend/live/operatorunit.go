package live

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"

	"k8s.io/utils/clock"

	"github.com/kmsharness/kmsharness/harness/backend/operated"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/scenario"
	lifecycle "github.com/kmsharness/kmsharness/operator"
	"github.com/kmsharness/kmsharness/operator/config"
)

// operatorUnit is the operator as a unit: one goroutine of this process at a time, so there is one leader. Kill cancels its context: it gives
// up the requests in flight, and cleans up nothing that its next run would find.
type operatorUnit struct {
	pods *pods

	mu     sync.Mutex
	cancel context.CancelFunc
	done   chan struct{}
	phase  Phase
	older  bool // of a release before KMS
}

// release is that of which it is started from now on; empty: as before.
func (u *operatorUnit) release(name string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if name != "" {
		u.older = name == scenario.ReleaseOlder
	}
}

var _ Unit = (*operatorUnit)(nil)

// Start implements Unit.
func (u *operatorUnit) Start(context.Context) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.phase == Running {
		return nil
	}
	log, err := os.OpenFile(u.pods.logFile(), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("start the operator: %w", err)
	}
	op, err := u.pods.newOperator(u.older, slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		return errors.Join(err, log.Close())
	}
	ctx, cancel := context.WithCancel(u.pods.ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer log.Close()
		_ = op.Run(ctx) // it ends with its context
	}()
	u.cancel, u.done, u.phase = cancel, done, Running
	u.send(history.ProcessStarted)
	return nil
}

func (u *operatorUnit) end(state string) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.phase != Running {
		return nil
	}
	u.cancel()
	<-u.done
	u.phase = Ended
	u.send(state)
	return nil
}

// Stop implements Unit.
func (u *operatorUnit) Stop(context.Context) error { return u.end(history.ProcessStopped) }

// Kill implements Unit.
func (u *operatorUnit) Kill(context.Context) error { return u.end(history.ProcessKilled) }

var errCannotPause = errors.New("the operator is a part of the harness and cannot stand still: kill it")

// Pause implements Unit.
func (u *operatorUnit) Pause(context.Context) error { return errCannotPause }

// Resume implements Unit.
func (u *operatorUnit) Resume(context.Context) error { return errCannotPause }

// Status implements Unit.
func (u *operatorUnit) Status() Status {
	u.mu.Lock()
	defer u.mu.Unlock()
	return Status{Phase: u.phase}
}

func (u *operatorUnit) send(state string) {
	identity := u.pods.operator.Identity
	identity.State = state
	if u.older && state == history.ProcessStarted {
		identity.Detail = "of a release from before KMS"
	}
	u.pods.e.record(&identity)
}

func (p *pods) logFile() string { return filepath.Join(p.e.logDir, "operator.log") }

const (
	operatorUser = "kmsharness-operator"
	// operatorRequests a second, more than it ever makes.
	operatorRequests = 100
)

func (p *pods) newOperator(older bool, log *slog.Logger) (*lifecycle.Operator, error) {
	rest, err := p.e.controlPlane.RESTConfig(operatorUser, []string{"system:masters"}, p.e.controlPlane.ClientServer())
	if err != nil {
		return nil, fmt.Errorf("start the operator: %w", err)
	}
	rest.QPS, rest.Burst = operatorRequests, operatorRequests
	opts := operated.CoreOptions(p.e.traits.Timing)
	return lifecycle.New(lifecycle.Options{
		REST: rest, Component: p.e.operated.revised(), Resource: p.e.operator.resource, Kind: p.e.operator.kind, Core: opts, Config: config.Options{BeforeKMS: older}, Check: operated.Check,
		Encrypted: []string{p.e.objects.name()}, Executor: p.executor(), Clock: clock.RealClock{}, Random: rand.Reader, Log: log, Decide: p.decide, Contents: p.e.opts.Contents,
	})
}
