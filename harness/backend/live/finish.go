package live

import (
	"context"
	"errors"
	"fmt"
	"sync"
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
	errs := []error{e.operated.endOperators(ctx), e.lastRead(ctx), e.eachAggregated(func(f *Environment) error { return f.lastRead(ctx) })}
	errs = append(errs, e.recorder.drain(ctx))
	e.controlPlane.Listen(nil)
	errs = append(errs, e.recorder.close(), e.logs.copy())
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
	if e.pods.underTest() {
		e.controlPlane.MarkDirty(TaintedData)
		return errors.Join(finished, e.EndSystemUnderTest(ctx), e.opts.Release(ctx, e, false))
	}
	for _, one := range e.all() {
		if one.procs.reachable(one.nodes(), "") != nil {
			e.controlPlane.MarkDirty(TaintedPower)
		}
	}
	if e.traits.Outlives && errors.Join(e.encrypting.clear(ctx), e.eachAggregated(func(f *Environment) error { return f.encrypting.clear(ctx) })) != nil {
		e.controlPlane.MarkDirty(TaintedData)
	}
	if e.traits.Outlives && e.pods != nil && e.operated.clearOperators(ctx) != nil {
		e.controlPlane.MarkDirty(TaintedOperator)
	}
	ended := e.EndSystemUnderTest(ctx)
	if ended != nil {
		e.controlPlane.MarkDirty(TaintedProgram)
	}
	return errors.Join(finished, ended, e.opts.Release(ctx, e, false))
}

// EndSystemUnderTest stops reporters and aggregators, all at once.
func (e *Environment) EndSystemUnderTest(ctx context.Context) error {
	units := e.sut.systemUnderTest()
	for _, f := range e.aggregated {
		units = append(units, f.sut.systemUnderTest()...)
	}
	errs := make([]error, len(units))
	var all sync.WaitGroup
	for i, u := range units {
		all.Go(func() { errs[i] = u.Stop(ctx) })
	}
	all.Wait()
	return errors.Join(errs...)
}

func (sut *systemUnderTest) systemUnderTest() []*Target {
	units := append([]*Target(nil), sut.e.aggregators...)
	for _, n := range sut.e.controlPlane.Nodes().List() {
		if r := n.Reporter(); r != nil {
			units = append(units, r)
		}
	}
	return units
}
