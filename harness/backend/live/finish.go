package live

import (
	"context"
	"errors"
	"fmt"

	"github.com/kmsharness/kmsharness/harness/cluster"
)

// Finish implements backend.Environment. Objects that the scenario wrote are read back a last time; then every recorder
// is drained, and the logs of what runs on for other scenarios are copied.
func (e *Environment) Finish(ctx context.Context) error {
	e.mu.Lock()
	if e.finished {
		e.mu.Unlock()
		return nil
	}
	e.finished = true
	e.mu.Unlock()
	observer := e.kube().recorder
	errs := []error{e.kube().operated.endOperators(ctx), eachAPIServer(e.apiServers, func(s *apiServer) error { return s.lastRead(ctx) }), observer.Drain(ctx)}
	e.controlPlane.Recording.Listen(nil)
	errs = append(errs, observer.Close(), e.logs.Copy())
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("the history may be incomplete: %w", err)
	}
	return nil
}

// Release implements backend.Environment. What is kept runs until the backend is closed; Describe says how to look at it.
func (e *Environment) Release(ctx context.Context, keep bool) error {
	finished := e.Finish(ctx)
	if keep {
		return errors.Join(finished, e.opts.Release(ctx, e, true))
	}
	if e.kube().pods.underTest() {
		e.controlPlane.MarkDirty(cluster.TaintedData)
		return errors.Join(finished, e.EndSystemUnderTest(ctx), e.opts.Release(ctx, e, false))
	}
	for _, one := range e.apiServers {
		if one.procs.reachable(one.nodes(), "") != nil {
			e.controlPlane.MarkDirty(cluster.TaintedPower)
		}
	}
	if e.traits.Outlives && eachAPIServer(e.apiServers, func(s *apiServer) error { return s.encrypting.clear(ctx) }) != nil {
		e.controlPlane.MarkDirty(cluster.TaintedData)
	}
	if e.traits.Outlives && e.kube().pods != nil && e.kube().operated.clearOperators(ctx) != nil {
		e.controlPlane.MarkDirty(cluster.TaintedOperator)
	}
	ended := e.EndSystemUnderTest(ctx)
	if ended != nil {
		e.controlPlane.MarkDirty(cluster.TaintedProgram)
	}
	return errors.Join(finished, ended, e.opts.Release(ctx, e, false))
}

// EndSystemUnderTest stops reporters and aggregators, all at once.
func (e *Environment) EndSystemUnderTest(ctx context.Context) error {
	var units []*cluster.Target
	for _, s := range e.apiServers {
		units = append(units, s.sut.systemUnderTest()...)
	}
	return cluster.Parallel(units, func(u *cluster.Target) error { return u.Stop(ctx) })
}

func (sut *systemUnderTest) systemUnderTest() []*cluster.Target {
	units := append([]*cluster.Target(nil), sut.e.aggregators...)
	for _, n := range sut.e.Nodes.List() {
		if r := n.Reporter(); r != nil {
			units = append(units, r)
		}
	}
	return units
}
