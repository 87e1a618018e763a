package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

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

func (f Phases) Start(ctx context.Context) error { return f(ctx, Running, history.ProcessStarted) }

func (f Phases) Stop(ctx context.Context) error { return f(ctx, Ended, history.ProcessStopped) }

func (f Phases) Kill(ctx context.Context) error { return f(ctx, Ended, history.ProcessKilled) }

func (f Phases) Pause(ctx context.Context) error { return f(ctx, Paused, history.ProcessPaused) }

func (f Phases) Resume(ctx context.Context) error { return f(ctx, Running, history.ProcessResumed) }

// Target is a unit with what the history calls it.
type Target struct {
	Unit
	Identity history.Process
}

type nodeUnit struct {
	memory *NodeStates
	role   string
	nodes  []*Node
	ready  func(*Target)
}

var _ Unit = (*nodeUnit)(nil)

// parts of a node in the order in which they start: plugins, API server, reporter. The write key's plugin has no special place:
// an API server needs them all.
// A node has the parts of further API servers as well, after those of the one that they depend on.
func (w *nodeUnit) parts(n *Node) []Target {
	all := parts(n)
	if w.role == history.RoleNode {
		for _, b := range n.Alongside {
			all = append(all, parts(b)...)
		}
	}
	return all
}

func parts(n *Node) []Target {
	var all []Target
	for _, g := range n.Plugins() {
		all = append(all, g.Target)
	}
	all = append(all, n.ServerTarget())
	if r := n.Reporter(); r != nil {
		all = append(all, *r)
	}
	return all
}

func living(all []Target) []Target {
	return slices.DeleteFunc(all, func(t Target) bool { return !t.Status().Running() })
}

// each does something to every node at the same time.
func (w *nodeUnit) each(ctx context.Context, do func(context.Context, *Node) error) error {
	return EachNode(ctx, w.nodes, do)
}

// EachNode does something to nodes at the same time.
func EachNode(ctx context.Context, nodes []*Node, do func(context.Context, *Node) error) error {
	all, ctx := errgroup.WithContext(ctx)
	for _, n := range nodes {
		all.Go(func() error {
			if err := do(ctx, n); err != nil {
				return fmt.Errorf("node %s: %w", n.Name, err)
			}
			return nil
		})
	}
	return all.Wait()
}

// Together does something to all of the targets at the same time.
func Together(targets []Target, do func(Target) error) error {
	return Parallel(targets, func(t Target) error {
		if err := do(t); err != nil {
			return fmt.Errorf("%s: %w", NameOf(t.Identity), err)
		}
		return nil
	})
}

// Parallel does something with all at the same time. One that fails does not keep it from the others.
func Parallel[T any](all []T, do func(T) error) error {
	errs := make([]error, len(all))
	var doing sync.WaitGroup
	for i, one := range all {
		doing.Go(func() { errs[i] = do(one) })
	}
	doing.Wait()
	return errors.Join(errs...)
}

// Kill implements Unit: everything at once.
func (w *nodeUnit) Kill(ctx context.Context) error {
	return w.each(ctx, func(ctx context.Context, n *Node) error {
		ran := living(w.parts(n))
		w.memory.end(w.role, n.Name, ran)
		return Together(ran, func(t Target) error { return t.Kill(ctx) })
	})
}

// Stop implements Unit, in the order in which a pod ends: its main container, then the sidecars, the one that started last first.
func (w *nodeUnit) Stop(ctx context.Context) error {
	return w.each(ctx, func(ctx context.Context, n *Node) error {
		ran := living(w.parts(n))
		w.memory.end(w.role, n.Name, ran)
		order := slices.Clone(ran)
		slices.Reverse(order)
		slices.SortStableFunc(order, func(a, b Target) int { return cmp.Compare(sidecar(a), sidecar(b)) })
		for _, t := range order {
			if err := t.Stop(ctx); err != nil {
				return fmt.Errorf("%s: %w", NameOf(t.Identity), err)
			}
		}
		return nil
	})
}

func sidecar(t Target) int {
	if t.Identity.Role == history.RoleAPIServer {
		return 0
	}
	return 1
}

func (w *nodeUnit) Start(ctx context.Context) error {
	return w.each(ctx, func(ctx context.Context, n *Node) error {
		for _, t := range w.memory.ran(w.role, n.Name) {
			if err := startIn(ctx, t); err != nil {
				return fmt.Errorf("%s: %w", NameOf(t.Identity), err)
			}
			w.ready(&t)
		}
		w.memory.started(w.role, n.Name)
		return nil
	})
}

func startIn(ctx context.Context, t Target) error {
	ctx, cancel := context.WithTimeout(ctx, StartTimeout)
	defer cancel()
	return t.Start(ctx)
}

func (w *nodeUnit) Pause(ctx context.Context) error {
	return w.still(ctx, func(t Target) error { return t.Pause(ctx) })
}

// Silence implements Silencer. Plugins are reached on the node itself only.
func (w *nodeUnit) Silence(ctx context.Context) error {
	return w.still(ctx, func(t Target) error {
		if t.Identity.Role == history.RolePlugin {
			return nil
		}
		return Silence(ctx, t.Unit)
	})
}

// still pauses or silences what runs. What stands still already is not the node's to resume.
func (w *nodeUnit) still(ctx context.Context, do func(Target) error) error {
	return w.each(ctx, func(_ context.Context, n *Node) error {
		running := slices.DeleteFunc(w.parts(n), func(t Target) bool { return t.Status().Phase != Running })
		w.memory.pause(n.Name, running)
		return Together(running, do)
	})
}

func (w *nodeUnit) Resume(ctx context.Context) error {
	return w.each(ctx, func(ctx context.Context, n *Node) error {
		return Together(w.memory.resume(n.Name), func(t Target) error { return t.Resume(ctx) })
	})
}

// Status implements Unit: what happened to it as a whole is the scenario's to know.
func (w *nodeUnit) Status() Status { return Status{Phase: Running} }
