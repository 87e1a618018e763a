package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

// Why the processes of a node cannot be told anything: what its node or its pod was told last.
const (
	unavailableKilled  = "has no power: start role node first"
	unavailablePaused  = "is paused: resume role node first"
	unavailableStopped = "is without its API server's pod: start role pod first"
)

// unitsOf carries out start … restart of nodes, or of the API servers' pods on them, each as one unit.
func (ps *processes) unitsOf(ctx context.Context, a *scenario.Process) error {
	if err := ps.e.topology.turn.take(ps.e); err != nil {
		return err
	}
	defer ps.e.topology.turn.give()
	nodes, err := ps.selectNodes(a.Target.Node, false)
	if err == nil && a.Target.Role == history.RolePod {
		err = reachable(nodes, unavailableStopped)
	}
	if err != nil {
		return err
	}
	role := a.Target.Role
	switch a.Do {
	case scenario.VerbPause:
		ps.pauseNodes(nodes)
		return nil
	case scenario.VerbResume:
		ps.resumeNodes(nodes)
		return nil
	case scenario.VerbStart:
		return ps.startUnits(role, nodes)
	}
	if err := ps.endUnits(role, nodes, a.Do == scenario.VerbKill || a.With == scenario.WithKill); err != nil || a.Do != scenario.VerbRestart {
		return err
	}
	return ps.startUnits(role, nodes)
}

func reachable(nodes []*node, except string) error {
	var errs []error
	for _, n := range nodes {
		for _, role := range []string{history.RoleNode, history.RolePod} {
			if why := n.unavailable[role]; why != "" && why != except {
				errs = append(errs, fmt.Errorf("node %s %s", n.name, why))
			}
		}
	}
	return errors.Join(errs...)
}

// present is an error if nothing can be done on a node, also of a pod on it.
func present(n *node) error {
	if n.host == nil {
		return reachable([]*node{n}, "")
	}
	return errors.Join(reachable([]*node{n.host}, unavailableStopped), reachable([]*node{n}, ""))
}

// stay keeps nodes and pods from coming and going, until it is ended: those of this API server, and of kube-apiserver, whose nodes they are.
func (tp *topology) stay() (end func(), err error) {
	var taken []*turns
	end = func() {
		for _, t := range taken {
			t.give()
		}
	}
	if tp.e.kube != nil {
		if err := tp.e.kube.topology.turn.take(tp.e); err != nil {
			return end, err
		}
		taken = append(taken, &tp.e.kube.topology.turn)
	}
	if err := tp.turn.take(tp.e); err != nil {
		end()
		return func() {}, err
	}
	taken = append(taken, &tp.turn)
	return end, nil
}

// writeConfig notes what has become of a node or a pod.
func (n *node) writeConfig(role, unavailable string, states ...string) {
	if n.unavailable[role] = unavailable; unavailable == "" {
		delete(n.unavailable, role)
	}
	for _, state := range states {
		n.w.record("backend", &history.Process{Role: role, Node: n.name, State: state})
	}
}

// endUnits ends all parts: at once, or the API server first and then the rest, the last started first.
func (ps *processes) endUnits(role string, nodes []*node, kill bool) error {
	if role == history.RoleNode && kill && ps.last(nodes) {
		ps.etcdWith(nodes, func(p *proc) { p.end(history.ProcessKilled, "") })
	}
	state, unavailable := history.ProcessStopped, unavailableStopped
	if role == history.RoleNode {
		unavailable = unavailableKilled
	}
	if kill {
		state = history.ProcessKilled
	}
	err := each(ps.e, nodes, startTimeout, func(n *node, done func(error)) {
		ran := slices.DeleteFunc(n.processes(role), func(p *proc) bool { return !p.running() })
		if _, already := n.ran[role]; !already {
			n.ran[role] = ran
		}
		n.paused = nil
		if kill {
			for _, p := range ran {
				p.end(history.ProcessKilled, "")
			}
			done(nil)
			return
		}
		order := slices.Clone(ran)
		slices.Reverse(order)
		slices.SortStableFunc(order, func(a, b *proc) int { return sidecar(a) - sidecar(b) })
		inTurn(order, (*proc).stop, func() { done(nil) })
	})
	for _, n := range nodes {
		n.writeConfig(role, unavailable, state)
	}
	return err
}

func sidecar(p *proc) int {
	if p.id.Role == history.RoleAPIServer {
		return 0
	}
	return 1
}

// inTurn does something to one after the other.
func inTurn(all []*proc, do func(*proc, func()), done func()) {
	if len(all) == 0 {
		done()
		return
	}
	do(all[0], func() { inTurn(all[1:], do, done) })
}

// last says whether no node is left with power but these.
func (ps *processes) last(nodes []*node) bool {
	for _, n := range ps.w.nodes {
		if !slices.Contains(nodes, n) && n.unavailable[history.RoleNode] == "" {
			return false
		}
	}
	return true
}

// etcdWith does something to etcd together with the last nodes, as to the members of a cluster.
func (ps *processes) etcdWith(nodes []*node, do func(*proc)) {
	if p := &ps.w.etcd.proc; p.runs() {
		nodes[0].ran["etcd"] = []*proc{p}
		do(p)
	}
}

func (ps *processes) startUnits(role string, nodes []*node) error {
	for _, n := range ps.w.nodes {
		if etcd := n.ran["etcd"]; role == history.RoleNode && len(etcd) > 0 {
			delete(n.ran, "etcd")
			if err := each(ps.e, etcd, startTimeout, func(p *proc, done func(error)) { p.start(func() { done(nil) }) }); err != nil {
				return fmt.Errorf("start etcd: %w", err)
			}
		}
	}
	err := each(ps.e, nodes, startTimeout, func(n *node, done func(error)) {
		inTurn(n.ran[role], (*proc).start, func() { done(nil) })
	})
	if err != nil {
		return err
	}
	for _, n := range nodes {
		delete(n.ran, role)
		n.writeConfig(role, "", history.ProcessStarted, history.ProcessReady)
	}
	return nil
}

// pauseNodes: what stands still already is not the node's to resume.
func (ps *processes) pauseNodes(nodes []*node) {
	if ps.last(nodes) {
		ps.etcdWith(nodes, (*proc).pause)
	}
	for _, n := range nodes {
		for _, p := range n.processes(history.RoleNode) {
			if p.runs() {
				n.paused = append(n.paused, p)
				p.pause()
			}
		}
		n.writeConfig(history.RoleNode, unavailablePaused, history.ProcessPaused)
	}
}

func (ps *processes) resumeNodes(nodes []*node) {
	for _, n := range ps.w.nodes {
		for _, p := range n.ran["etcd"] {
			p.resume()
		}
		delete(n.ran, "etcd")
	}
	for _, n := range nodes {
		for _, p := range n.paused {
			p.resume()
		}
		n.paused = nil
		n.writeConfig(history.RoleNode, "", history.ProcessResumed)
	}
}
