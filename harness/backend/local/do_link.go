package local

import (
	"context"
	"fmt"

	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/netfault"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

// link puts a fault in force on the selected links, or restores them.
func (e *Environment) link(_ context.Context, a scenario.Action) error {
	fault, err := faultOf(a)
	if err != nil {
		return err
	}
	switch a.Link.From {
	case fromAggregator, fromClient, "harness":
		from := a.Link.From
		if from != fromAggregator {
			from = fromClient
		}
		return e.setLink(e.plane.front[from].Set, history.Link{From: from, To: history.RoleLoadBalancer}, fault)
	}
	nodes, err := e.selectNodes(a.Link.Node, true)
	if err != nil {
		return err
	}
	for _, n := range nodes {
		set, err := e.linkOf(n, a.Link.From, a.Link.To)
		if err != nil {
			return err
		}
		if err := e.setLink(set, history.Link{From: a.Link.From, To: a.Link.To, Node: n.name}, fault); err != nil {
			return err
		}
	}
	return nil
}

func (e *Environment) linkOf(n *node, from, to string) (func(netfault.Fault) error, error) {
	switch {
	case from == history.RoleReporter && to == history.RoleAPIServer:
		return n.link.Set, nil
	case from == history.RoleAPIServer && to == history.RoleEtcd:
		return n.server.EtcdLink().Set, nil
	case from == history.RoleLoadBalancer && to == history.RoleAPIServer:
		return func(f netfault.Fault) error { return e.plane.lb.Set(n.name, f) }, nil
	}
	return nil, fmt.Errorf("there is no link from %q to %q here: reporters go to their own API server, aggregators and clients to the load balancer", from, to)
}

func (e *Environment) setLink(set func(netfault.Fault) error, l history.Link, f netfault.Fault) error {
	if err := set(f); err != nil {
		return err
	}
	l.State, l.Delay = stateOf(f.Mode), f.Delay
	e.record(&l)
	return nil
}

func faultOf(a scenario.Action) (netfault.Fault, error) {
	switch mode := a.Text("mode"); mode {
	case "cut":
		return netfault.Fault{Mode: netfault.Cut}, nil
	case "reset":
		return netfault.Fault{Mode: netfault.Reset}, nil
	case "slow":
		return netfault.Fault{Mode: netfault.Slow, Delay: a.Duration("delay")}, nil
	case "restore":
		return netfault.Fault{}, nil
	default:
		return netfault.Fault{}, fmt.Errorf("mode %q: expected cut, reset, slow or restore", mode)
	}
}

func stateOf(m netfault.Mode) string {
	switch m {
	case netfault.Cut:
		return history.LinkCut
	case netfault.Reset:
		return history.LinkReset
	case netfault.Slow:
		return history.LinkSlow
	default:
		return history.LinkOK
	}
}

// loadBalancer acts on the load balancer, which is a part of the harness: what its clients see is that of a process
// that was paused, or that is gone.
func (e *Environment) loadBalancer(v scenario.Verb) error {
	fault, states := netfault.Fault{}, []string{history.ProcessStarted, history.ProcessReady}
	switch v {
	case scenario.VerbStop:
		fault.Mode, states = netfault.Reset, []string{history.ProcessStopped}
	case scenario.VerbKill:
		fault.Mode, states = netfault.Reset, []string{history.ProcessKilled}
	case scenario.VerbPause:
		fault.Mode, states = netfault.Cut, []string{history.ProcessPaused}
	case scenario.VerbResume:
		states = []string{history.ProcessResumed}
	case scenario.VerbRestart:
		states = append([]string{history.ProcessStopped}, states...)
		for _, l := range e.plane.front { // connections do not survive it
			if err := l.Set(netfault.Fault{Mode: netfault.Reset}); err != nil {
				return err
			}
		}
	}
	for _, l := range e.plane.front {
		if err := l.Set(fault); err != nil {
			return err
		}
	}
	for _, state := range states {
		e.record(&history.Process{Role: history.RoleLoadBalancer, State: state})
	}
	return nil
}
