package sim

import (
	"context"
	"errors"
	"fmt"

	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/operator/encryption"
)

// An API server beside kube-apiserver is an environment within the environment, as on real backends: the same code does the same to it.

// makeAggregated makes those of a topology.
func (e *environment) makeAggregated() error {
	for _, name := range e.scenario.Topology.Aggregated() {
		w, err := e.w.newAggregated(name, keyIDsOf(e.scenario))
		if err != nil {
			return err
		}
		f := newPart(w, e.scenario)
		f.kube = e
		if e.pods != nil {
			f.operate()
		}
		f.begins(encryption.Of(encryption.KMS, w.keyIDs...))
		e.aggregated = append(e.aggregated, f)
	}
	return nil
}

// main is kube-apiserver's.
func (e *environment) main() *environment {
	if e.kube != nil {
		return e.kube
	}
	return e
}

// all are those of all API servers.
func (e *environment) all() []*environment {
	return append([]*environment{e.main()}, e.main().aggregated...)
}

// headings of the further API servers. Their reporters have no API server of their own node.
func (e *environment) headings() []history.AggregatedAPIServer {
	var all []history.AggregatedAPIServer
	for _, f := range e.aggregated {
		all = append(all, history.AggregatedAPIServer{Name: f.w.apiServer, Operator: f.w.operator.core.Resource,
			ClusterOperator: f.w.operator.core.ClusterOperator, Connectivity: f.w.connectivity})
	}
	return all
}

// doAimed carries out an action: on the API server that it is aimed at, on all of them if it is about all, or on kube-apiserver.
func (e *environment) doAimed(ctx context.Context, a scenario.Action) error {
	switch name := scenario.OfAPIServer(a); {
	case name != "":
		return e.doOne(ctx, name, a)
	case scenario.OfCluster(a) && len(e.aggregated) > 0:
		return e.doAll(ctx, a)
	}
	return e.handlers().Do(ctx, a)
}

func (e *environment) doOne(ctx context.Context, name string, a scenario.Action) error {
	nodes, err := e.procs.selectNodes(scenario.Selected(a).Node, false)
	if err == nil {
		err = reachable(nodes, unavailableStopped)
	}
	if err != nil {
		return err
	}
	for _, f := range e.aggregated {
		if f.w.apiServer == name {
			return f.handlers().Do(ctx, scenario.ForAPIServer(a, ""))
		}
	}
	return fmt.Errorf("there is no %s in the topology", name)
}

// doAll carries it out on all API servers at once, each in a task of its own.
func (e *environment) doAll(ctx context.Context, a scenario.Action) error {
	var failed []error
	left, over := len(e.aggregated), func() {}
	for _, f := range e.aggregated {
		e.w.k.Go(func() {
			if err := f.handlers().Do(ctx, a); err != nil {
				failed = append(failed, fmt.Errorf("%s: %w", f.w.apiServer, err))
			}
			if left--; left == 0 {
				over()
			}
		})
	}
	err := e.handlers().Do(ctx, a)
	if left > 0 {
		err = errors.Join(err, e.w.k.Suspend(func(done func()) { over = done }))
	}
	return errors.Join(append([]error{err}, failed...)...)
}
