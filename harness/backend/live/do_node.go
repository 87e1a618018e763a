package live

import (
	"context"
	"errors"
	"fmt"

	"github.com/kmsharness/kmsharness/harness/cluster"
	"github.com/kmsharness/kmsharness/harness/cluster/objects"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/record/tail"
	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/internal/turn"
)

// nodeChanges adds, removes and replaces nodes.
type nodeChanges struct {
	e    *apiServer
	turn turn.Turn // one change of nodes or encryption at a time
}

func (nc *nodeChanges) changeNodes(ctx context.Context, a *scenario.Node) error {
	nc.turn.Lock()
	defer nc.turn.Unlock()
	if err := nc.e.procs.reachable(nc.e.nodes(), ""); err != nil {
		return err
	}
	nc.e.controlPlane.MarkDirty(cluster.TaintedNodes)
	lingers := a.Reporter == scenario.ReporterLingers
	switch {
	case a.Remove != "":
		return nc.removeNode(ctx, a.Remove, lingers)
	case a.Add != "":
		return nc.addNode(ctx, a.Add)
	case a.Replace != "":
		if err := nc.removeNode(ctx, a.Replace, lingers); err != nil {
			return err
		}
		return nc.addNode(ctx, a.With)
	}
	return errors.New("expected remove, add, or replace and with")
}

// removeNode takes a node out in the order of a graceful shutdown: its reporter first, so that it does not see the end
// of its plugin, then the Node object, the plugins and the API server. A reporter that lingers keeps its plugins and its
// API server, and writes the report of a node that is gone, until the end or until a node of the same name is added.
func (nc *nodeChanges) removeNode(ctx context.Context, name string, lingers bool) error {
	n := nc.e.Nodes.Get(name)
	if n == nil || len(nc.e.nodeNames()) < 2 {
		return fmt.Errorf("remove node %q: there are %v, and one has to be left", name, nc.e.nodeNames())
	}
	if !lingers {
		if err := n.Reporter().Stop(ctx); err != nil {
			return fmt.Errorf("stop the reporter of %s: %w", name, err)
		}
	}
	if err := nc.e.controlPlane.Topology.Isolate(ctx, n); err != nil {
		return err
	}
	if err := nc.deleteNodeObject(ctx, n); err != nil {
		return err
	}
	nc.e.mu.Lock()
	nc.e.removed[name] = n
	nc.e.mu.Unlock()
	if nc.e.pods != nil {
		nc.e.pods.leave(name)
	}
	nc.e.recordExpected()
	if lingers {
		return nil
	}
	return nc.dismantle(ctx, n)
}

func (nc *nodeChanges) deleteNodeObject(ctx context.Context, gone *cluster.Node) error {
	for _, n := range nc.e.serving() {
		if n != gone {
			return n.Admin.Remove(ctx, cluster.NodeObjects(), "", gone.Name)
		}
	}
	return errors.New("no API server of another node runs")
}

// dismantle ends what is left of a removed node.
func (nc *nodeChanges) dismantle(ctx context.Context, n *cluster.Node) error {
	nc.e.recorder.Forget(n.Name)
	if err := nc.e.recorder.DrainAudit(ctx, n); err != nil {
		return err
	}
	if err := errors.Join(endReporter(ctx, n), nc.e.controlPlane.Topology.RemoveNode(ctx, n)); err != nil {
		return err
	}
	nc.e.mu.Lock()
	delete(nc.e.removed, n.Name)
	delete(nc.e.reloads, n.Name)
	nc.e.mu.Unlock()
	return nil
}

// addNode brings a node up: plugins, API server, the Node object, the reporter last. The name of a removed node can be
// used again; whatever lingers of it ends first.
func (nc *nodeChanges) addNode(ctx context.Context, name string) error {
	if n := nc.e.Nodes.Get(name); n != nil {
		nc.e.mu.Lock()
		lingers := nc.e.removed[name] != nil
		nc.e.mu.Unlock()
		if !lingers {
			return fmt.Errorf("add node %q: it is there already", name)
		}
		if err := nc.dismantle(ctx, n); err != nil {
			return err
		}
	}
	if len(nc.e.nodeNames()) >= nc.e.traits.MaxNodes {
		return fmt.Errorf("add node %q: there are %d already, at most %d fit", name, len(nc.e.nodeNames()), nc.e.traits.MaxNodes)
	}
	add := nc.bringUp
	if nc.e.pods != nil {
		add = nc.e.operated.join
	}
	if err := add(ctx, name); err != nil {
		return fmt.Errorf("add node %s: %w", name, err)
	}
	return nil
}

// bringUp adds a node to a cluster without an operator. Its reporter starts last: the node is expected before, so that a late first report is seen.
func (nc *nodeChanges) bringUp(ctx context.Context, name string) error {
	n, err := nc.e.controlPlane.Topology.AddNode(ctx, name, nc.e.encrypting.current(), func(ctx context.Context) error { return nc.joined(ctx, name) })
	if err != nil {
		return err
	}
	if err := nc.meet(ctx, n, func() error { nc.e.encrypting.recordConfiguredOn(name); return nil }); err != nil {
		return err
	}
	nc.e.mu.Lock()
	delete(nc.e.joining, name)
	nc.e.mu.Unlock()
	nc.e.recordExpected()
	return nc.e.procs.start(ctx, n.Reporter())
}

// meet records a new node and makes it one of the cluster. recordConfig records the encryption configuration with which its API server began.
func (nc *nodeChanges) meet(ctx context.Context, n *cluster.Node, recordConfig func() error) (err error) {
	if err := nc.e.recorder.FollowNode(n, tail.FromStart); err != nil {
		return err
	}
	for _, g := range n.Plugins() {
		nc.recordReady(&g.Target)
	}
	server := n.ServerTarget()
	nc.recordReady(&server)
	if err := recordConfig(); err != nil {
		return err
	}
	if n.Since, err = objects.NodeSince(ctx, n.Admin, n.Name, nc.e.traits.RealNodes); err != nil {
		return err
	}
	return nc.e.sut.prepareReporter(ctx, n, n.ReporterPlace.MetricsAddress)
}

// joined records that a node is expected to report since its kubelet registered it, long before its reporter can run.
func (nc *nodeChanges) joined(ctx context.Context, name string) error {
	c, err := nc.e.Nodes.Admin()
	if err != nil {
		return err
	}
	since, err := objects.NodeSince(ctx, c, name, nc.e.traits.RealNodes)
	if err != nil {
		return err
	}
	nc.e.mu.Lock()
	nc.e.joining[name] = since
	nc.e.mu.Unlock()
	nc.e.recordExpectedAt(since)
	return nil
}

// recordReady records that a process answers. The node of a power cycle may have been that of a further API server's process as well.
func (nc *nodeChanges) recordReady(t *cluster.Target) {
	ready := t.Identity
	ready.PID, ready.State = t.Status().PID, history.ProcessReady
	if nc.e.Name != "" { // its sink says whose it is
		nc.e.record(&ready)
		return
	}
	nc.e.record(owned(&ready))
}

func endReporter(ctx context.Context, n *cluster.Node) error {
	if r := n.Reporter(); r != nil {
		return r.Stop(ctx)
	}
	return nil
}
