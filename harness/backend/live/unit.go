package live

import (
	"context"
	"errors"

	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/process"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

// Unit is a place for one process at a time: one that was stopped or killed stays away until it is started.
type Unit interface {
	// Start starts it unless it runs, and returns when it answers.
	Start(ctx context.Context) error
	// Stop asks it to end and waits, Kill does not ask. Both are content with one that is gone already.
	Stop(ctx context.Context) error
	Kill(ctx context.Context) error
	// Pause and Resume stop and continue it as a whole; it keeps its connections.
	Pause(ctx context.Context) error
	Resume(ctx context.Context) error
	Status() Status
}

// Silencer is a Unit that can be cut off from all other machines. Resume ends that.
type Silencer interface {
	Silence(ctx context.Context) error
}

// Upgrader is an API server that can be of another release of Kubernetes from its next start on.
type Upgrader interface {
	SetRelease(release string) error
}

// NoReleases is why programs cannot be of several releases.
const NoReleases = "programs of other releases: all programs are compiled into one (sim), or are those of images (kind)"

// NoSecondPods is why an API server has one pod on a node.
const NoSecondPods = "pod second: kube-apiserver has one pod on each node, and on kind other API servers have, too"

// UnsupportedReleases says so of a scenario that needs others.
func UnsupportedReleases(s *scenario.Scenario) []string {
	if len(s.Kubernetes())+len(s.Previous()) > 0 {
		return []string{NoReleases}
	}
	return nil
}

// NoSilence is why processes cannot be silenced where they are real.
const NoSilence = "silence: real processes share the network of their machine: pause stops one, and link cuts its connections with API servers"

// Silence cuts a unit off from all other machines, if it can be.
func Silence(ctx context.Context, u any) error {
	if s, ok := u.(Silencer); ok {
		return s.Silence(ctx)
	}
	return errors.New(NoSilence)
}

type (
	Status = process.Status
	Phase  = process.State
)

const (
	Never   Phase = "" // not started so far
	Running       = process.Running
	Paused        = process.Paused
	Ended         = process.Exited
)

// Phases is a Unit that is no process, but a part of the harness or of a control plane in memory. It brings that into a phase, whose state is what the
// history calls the change.
type Phases func(ctx context.Context, p Phase, state string) error

func (f Phases) Start(ctx context.Context) error  { return f(ctx, Running, history.ProcessStarted) }
func (f Phases) Stop(ctx context.Context) error   { return f(ctx, Ended, history.ProcessStopped) }
func (f Phases) Kill(ctx context.Context) error   { return f(ctx, Ended, history.ProcessKilled) }
func (f Phases) Pause(ctx context.Context) error  { return f(ctx, Paused, history.ProcessPaused) }
func (f Phases) Resume(ctx context.Context) error { return f(ctx, Running, history.ProcessResumed) }

// Target is a unit with what the history calls it.
type Target struct {
	Unit
	Identity history.Process
}
