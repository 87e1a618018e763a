package live

import (
	"context"
	"errors"
	"fmt"

	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/record/tail"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

// changeNodes removes, adds or replaces a node.
func (e *Environment) changeNodes(ctx context.Context, a *scenario.Node) error {
	e.topology.Lock()
	defer e.topology.Unlock()
	if err := e.reachable(e.nodes(), ""); err != nil {
		return err
	}
	e.plane.Spoil(DamagedNodes)
	lingers := a.Reporter == scenario.ReporterLingers
	switch {
	case a.Remove != "":
		return e.removeNode(ctx, a.Remove, lingers)
	case a.Add != "":
		return e.addNode(ctx, a.Add)
	case a.Replace != "":
		if err := e.removeNode(ctx, a.Replace, lingers); err != nil {
			return err
		}
		return e.addNode(ctx, a.With)
	}
	return errors.New("expected remove, add, or replace and with")
}

// removeNode takes a node out in the order of a graceful shutdown: its reporter first, so that it does not see the end
// of its plugin, then the Node object, the plugins and the API server. A reporter that lingers keeps its plugins and its
// API server until the end, or until a node of the same name is added.
func (e *Environment) removeNode(ctx context.Context, name string, lingers bool) error {
	n := e.plane.Nodes().Get(name)
	if n == nil || len(e.Nodes()) < 2 {
		return fmt.Errorf("remove node %q: there are %v, and one has to be left", name, e.Nodes())
	}
	if !lingers {
		if err := n.Reporter().Stop(ctx); err != nil {
			return fmt.Errorf("stop the reporter of %s: %w", name, err)
		}
	}
	if err := e.plane.Isolate(ctx, n); err != nil {
		return err
	}
	if err := e.deleteNodeObject(ctx, n); err != nil {
		return err
	}
	e.mu.Lock()
	e.removed[name] = n
	e.mu.Unlock()
	e.pods.leave(name)
	e.recordExpected()
	if lingers {
		return nil
	}
	return e.dismantle(ctx, n)
}

func (e *Environment) deleteNodeObject(ctx context.Context, gone *Node) error {
	for _, n := range e.serving() {
		if n != gone {
			return n.Admin.remove(ctx, nodeObjects(), "", gone.Name)
		}
	}
	return errors.New("no API server of another node runs")
}

// dismantle ends what is left of a removed node.
func (e *Environment) dismantle(ctx context.Context, n *Node) error {
	e.recorder.forget(n.Name)
	if err := e.recorder.drainAudit(ctx, n); err != nil {
		return err
	}
	if err := errors.Join(n.endReporter(ctx), e.plane.RemoveNode(ctx, n)); err != nil {
		return err
	}
	e.mu.Lock()
	delete(e.removed, n.Name)
	delete(e.reloads, n.Name)
	e.mu.Unlock()
	return nil
}

// addNode brings a node up: plugins, API server, the Node object, the reporter last. The name of a removed node can be
// used again; whatever lingers of it ends first.
func (e *Environment) addNode(ctx context.Context, name string) error {
	if n := e.plane.Nodes().Get(name); n != nil {
		e.mu.Lock()
		lingers := e.removed[name] != nil
		e.mu.Unlock()
		if !lingers {
			return fmt.Errorf("add node %q: it is there already", name)
		}
		if err := e.dismantle(ctx, n); err != nil {
			return err
		}
	}
	if len(e.Nodes()) >= e.traits.MaxNodes {
		return fmt.Errorf("add node %q: there are %d already, at most %d fit", name, len(e.Nodes()), e.traits.MaxNodes)
	}
	add := e.bringUp
	if e.pods != nil {
		add = e.join
	}
	if err := add(ctx, name); err != nil {
		return fmt.Errorf("add node %s: %w", name, err)
	}
	return nil
}

func (e *Environment) bringUp(ctx context.Context, name string) error {
	n, err := e.plane.AddNode(ctx, name, e.current(), func(ctx context.Context) error { return e.joined(ctx, name) })
	if err != nil {
		return err
	}
	if err := e.meet(ctx, n, func() error { e.recordToldTo(name); return nil }); err != nil {
		return err
	}
	e.mu.Lock()
	delete(e.joining, name)
	e.mu.Unlock()
	e.recordExpected()
	return e.start(ctx, n.Reporter())
}

// meet follows a node that is new, and makes it one of the cluster. told notes what its API server has begun with.
func (e *Environment) meet(ctx context.Context, n *Node, told func() error) (err error) {
	if err := e.recorder.followNode(n, tail.FromStart); err != nil {
		return err
	}
	for _, g := range n.Plugins() {
		e.recordReady(&g.Target)
	}
	e.recordReady(&Target{n.Server, history.Process{Role: history.RoleAPIServer, Node: n.Name}})
	if err := told(); err != nil {
		return err
	}
	if err := e.prepareReporter(n, n.ReporterPlace.MetricsAddress); err != nil {
		return err
	}
	n.since, err = n.Admin.nodeObject(ctx, n.Name, e.traits.RealNodes)
	return err
}

// joined records that a node is expected to report since its kubelet registered it, long before its reporter can run.
func (e *Environment) joined(ctx context.Context, name string) error {
	c, err := e.plane.Nodes().Admin()
	if err != nil {
		return err
	}
	since, err := c.nodeObject(ctx, name, true)
	if err != nil {
		return err
	}
	e.mu.Lock()
	e.joining[name] = since
	e.mu.Unlock()
	e.recordExpectedAt(since)
	return nil
}

// recordReady records that a process answers. The node of a power cycle may have been that of a further API server's process as well.
func (e *Environment) recordReady(t *Target) {
	ready := t.Identity
	ready.PID, ready.State = t.Status().PID, history.ProcessReady
	if e.main != nil { // its sink says whose it is
		e.record(&ready)
		return
	}
	e.record(owned(&ready))
}

func (n *Node) endReporter(ctx context.Context) error {
	if r := n.Reporter(); r != nil {
		return r.Stop(ctx)
	}
	return nil
}
