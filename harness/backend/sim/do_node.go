package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/lifecycle/encryption"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

// maxNodes is the scenario language's own limit.
const maxNodes = 7

// changeNodes removes, adds or replaces a node.
func (e *environment) changeNodes(_ context.Context, a *scenario.Node) error {
	if err := e.turn.take(e); err != nil {
		return err
	}
	defer e.turn.give()
	if err := reachable(e.nodes(), ""); err != nil {
		return err
	}
	lingers := a.Reporter == scenario.ReporterLingers
	switch {
	case a.Remove != "":
		return e.removeNode(a.Remove, lingers)
	case a.Add != "":
		return e.addNode(a.Add)
	case a.Replace != "":
		if err := e.removeNode(a.Replace, lingers); err != nil {
			return err
		}
		return e.addNode(a.With)
	}
	return errors.New("expected remove, add, or replace and with")
}

// removeNode takes a node out in the order of a graceful shutdown: its reporter first, then the Node object, the plugins and the
// API server. A reporter that lingers keeps its plugins and its API server.
func (e *environment) removeNode(name string, lingers bool) error {
	n := e.w.nodeNamed(name)
	if n == nil || n.removed || len(e.nodes()) < 2 {
		return fmt.Errorf("remove node %q: there are %v, and one has to be left", name, e.Nodes())
	}
	if !lingers {
		if err := e.stop(&n.reporter.proc); err != nil {
			return err
		}
	}
	n.isolated = true
	for _, c := range slices.Clone(n.balanced.conns) {
		c.fail(errReset)
	}
	if err := e.deleteNodeObject(n); err != nil {
		return err
	}
	n.removed = true
	e.pods.leave(name)
	e.recordExpected()
	if lingers {
		return nil
	}
	return e.dismantle(n)
}

func (e *environment) stop(p *proc) error {
	return e.within(startTimeout, func(done func(error)) { p.stop(func() { done(nil) }) })
}

func (e *environment) start(p *proc) error {
	return e.within(startTimeout, func(done func(error)) { p.start(func() { done(nil) }) })
}

func (e *environment) deleteNodeObject(gone *node) error {
	for _, n := range e.serving() {
		if n != gone {
			return e.ask(n, request{user: "system:admin", verb: verbDelete, key: keyOf(nodeObjects(), gone.name)}).problem()
		}
	}
	return errors.New("no API server of another node runs")
}

// dismantle ends what is left of a removed node.
func (e *environment) dismantle(n *node) error {
	if err := e.stop(&n.reporter.proc); err != nil {
		return err
	}
	for _, p := range n.plugins {
		if err := e.stop(&p.proc); err != nil {
			return err
		}
	}
	n.server.end(history.ProcessStopped, "")
	if n.ahead != 0 { // its clock goes with it: a node of the same name has another
		e.w.record("backend", &history.Clock{Node: n.name})
	}
	e.w.nodes = slices.DeleteFunc(e.w.nodes, func(o *node) bool { return o == n })
	return nil
}

// addNode brings a node up: plugins, API server, the Node object, the reporter last. Whatever lingers of an earlier one of its
// name ends first.
func (e *environment) addNode(name string) error {
	if n := e.w.nodeNamed(name); n != nil {
		if !n.removed {
			return fmt.Errorf("add node %q: it is there already", name)
		}
		if err := e.dismantle(n); err != nil {
			return err
		}
	}
	if len(e.nodes()) >= maxNodes {
		return fmt.Errorf("add node %q: there are %d already, at most %d fit", name, len(e.nodes()), maxNodes)
	}
	defer e.pods.come(name)()
	n := newNode(e.w, name, e.told.KeyIDs(encryption.KMS))
	n.isolated, n.removed = true, true // until it is one of the cluster
	n.server.envelope.wanted = encryptionConfig{providers: e.told}
	e.w.addNode(n)
	if err := e.startPluginsOf(n); err != nil {
		return fmt.Errorf("add node %s: %w", name, err)
	}
	if err := e.start(&n.server.proc); err != nil {
		return fmt.Errorf("add node %s: start its API server: %w", name, err)
	}
	if e.pods == nil {
		e.recordToldTo(n)
	}
	rep := e.ask(n, request{user: "system:admin", verb: verbCreate, key: keyOf(nodeObjects(), name), body: encode(nodeObject(name))})
	if err := rep.problem(); err != nil {
		return fmt.Errorf("create Node %s: %w", name, err)
	}
	n.since, n.isolated, n.removed = rep.version.Created, false, false
	if e.pods != nil {
		return e.pods.arrived(n)
	}
	e.recordExpected()
	return e.start(&n.reporter.proc)
}

// startPluginsOf starts those of a node that is new. With an operator, they and the configuration are of its newest revision.
func (e *environment) startPluginsOf(n *node) error {
	if e.pods != nil {
		return e.pods.equip(n)
	}
	return each(e, n.plugins, startTimeout, func(p *kmsPlugin, done func(error)) { p.start(func() { done(nil) }) })
}
