package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/operator/encryption"
)

// maxNodes is the scenario language's own limit.
const maxNodes = 7

// topology adds, removes and replaces nodes.
type topology struct {
	e    *environment
	w    *world
	turn turns // one change of nodes or encryption at a time
}

// changeNodes removes, adds or replaces a node.
func (tp *topology) changeNodes(_ context.Context, a *scenario.Node) error {
	if err := tp.turn.take(tp.e); err != nil {
		return err
	}
	defer tp.turn.give()
	if err := reachable(tp.e.nodes(), ""); err != nil {
		return err
	}
	lingers := a.Reporter == scenario.ReporterLingers
	switch {
	case a.Remove != "":
		return tp.removeNode(a.Remove, lingers)
	case a.Add != "":
		return tp.addNode(a.Add)
	case a.Replace != "":
		if err := tp.removeNode(a.Replace, lingers); err != nil {
			return err
		}
		return tp.addNode(a.With)
	}
	return errors.New("expected remove, add, or replace and with")
}

// removeNode takes a node out in the order of a graceful shutdown: its reporter first, then the Node object, the plugins and the
// API server. A reporter that lingers keeps its plugins and its API server.
func (tp *topology) removeNode(name string, lingers bool) error {
	n := tp.w.nodeNamed(name)
	if n == nil || n.removed || len(tp.e.nodes()) < 2 {
		return fmt.Errorf("remove node %q: there are %v, and one has to be left", name, tp.e.Nodes())
	}
	if !lingers {
		if err := tp.stop(&n.reporter.proc); err != nil {
			return err
		}
	}
	n.isolated = true
	for _, c := range slices.Clone(n.balanced.conns) {
		c.fail(errReset)
	}
	if err := tp.deleteNodeObject(n); err != nil {
		return err
	}
	n.removed = true
	tp.e.pods.leave(name)
	tp.e.recordExpected()
	if lingers {
		return nil
	}
	return tp.dismantle(n)
}

func (tp *topology) stop(p *proc) error {
	return tp.e.within(startTimeout, func(done func(error)) { p.stop(func() { done(nil) }) })
}

func (tp *topology) start(p *proc) error {
	return tp.e.within(startTimeout, func(done func(error)) { p.start(func() { done(nil) }) })
}

func (tp *topology) deleteNodeObject(gone *node) error {
	for _, n := range tp.e.serving() {
		if n != gone {
			return tp.e.ask(n, request{user: "system:admin", verb: verbDelete, key: keyOf(nodeObjects(), gone.name)}).problem()
		}
	}
	return errors.New("no API server of another node runs")
}

// dismantle ends what is left of a removed node.
func (tp *topology) dismantle(n *node) error {
	if err := tp.stop(&n.reporter.proc); err != nil {
		return err
	}
	for _, p := range n.plugins {
		if err := tp.stop(&p.proc); err != nil {
			return err
		}
	}
	n.server.end(history.ProcessStopped, "")
	if n.ahead != 0 { // its clock goes with it: a node of the same name has another
		tp.w.record("backend", &history.Clock{Node: n.name})
	}
	tp.w.nodes = slices.DeleteFunc(tp.w.nodes, func(o *node) bool { return o == n })
	return nil
}

// addNode brings a node up: plugins, API server, the Node object, the reporter last. Whatever lingers of an earlier one of its
// name ends first.
func (tp *topology) addNode(name string) error {
	if n := tp.w.nodeNamed(name); n != nil {
		if !n.removed {
			return fmt.Errorf("add node %q: it is there already", name)
		}
		if err := tp.dismantle(n); err != nil {
			return err
		}
	}
	if len(tp.e.nodes()) >= maxNodes {
		return fmt.Errorf("add node %q: there are %d already, at most %d fit", name, len(tp.e.nodes()), maxNodes)
	}
	defer tp.e.pods.come(name)()
	n := newNode(tp.w, name, tp.e.switching.configured.KeyIDs(encryption.KMS))
	n.isolated, n.removed = true, true // until it is one of the cluster
	n.server.envelope.wanted = tp.e.switching.configured
	tp.w.addNode(n)
	if err := tp.startPluginsOf(n); err != nil {
		return fmt.Errorf("add node %s: %w", name, err)
	}
	if err := tp.start(&n.server.proc); err != nil {
		return fmt.Errorf("add node %s: start its API server: %w", name, err)
	}
	if tp.e.pods == nil {
		tp.e.switching.recordConfiguredOn(n)
	}
	rep := tp.e.ask(n, request{user: "system:admin", verb: verbCreate, key: keyOf(nodeObjects(), name), body: encode(nodeObject(name))})
	if err := rep.problem(); err != nil {
		return fmt.Errorf("create Node %s: %w", name, err)
	}
	n.since, n.isolated, n.removed = rep.version.Created, false, false
	if tp.e.pods != nil {
		return tp.e.pods.arrived(n)
	}
	tp.e.recordExpected()
	return tp.start(&n.reporter.proc)
}

// startPluginsOf starts those of a node that is new. With an operator, they and the configuration are of its newest revision.
func (tp *topology) startPluginsOf(n *node) error {
	if tp.e.pods != nil {
		return tp.e.pods.equip(n)
	}
	return each(tp.e, n.plugins, startTimeout, func(p *kmsPlugin, done func(error)) { p.start(func() { done(nil) }) })
}
