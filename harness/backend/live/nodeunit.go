package live

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/kmsharness/kmsharness/harness/history"
)

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
	all = append(all, Target{n.Server, n.identity()})
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

// together does something to all of the targets at the same time.
func together(targets []Target, do func(Target) error) error {
	return parallel(targets, func(t Target) error {
		if err := do(t); err != nil {
			return fmt.Errorf("%s: %w", NameOf(t.Identity), err)
		}
		return nil
	})
}

// parallel does something with all at the same time. One that fails does not keep it from the others.
func parallel[T any](all []T, do func(T) error) error {
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
		return together(ran, func(t Target) error { return t.Kill(ctx) })
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
		return together(running, do)
	})
}

func (w *nodeUnit) Resume(ctx context.Context) error {
	return w.each(ctx, func(ctx context.Context, n *Node) error {
		return together(w.memory.resume(n.Name), func(t Target) error { return t.Resume(ctx) })
	})
}

// Status implements Unit: what happened to it as a whole is the scenario's to know.
func (w *nodeUnit) Status() Status { return Status{Phase: Running} }
