package local

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
	wrote := len(e.written) > 0
	e.mu.Unlock()
	var errs []error
	if wrote {
		errs = append(errs, e.verifyData(ctx))
	}
	errs = append(errs, e.recorder.drain(ctx))
	e.plane.listen(nil)
	errs = append(errs, e.recorder.close(), e.logs.copy())
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("the history may be incomplete: %w", err)
	}
	return nil
}

// Release implements backend.Environment. What is kept runs until Backend.Close; Describe says how to look at it.
func (e *Environment) Release(ctx context.Context, keep bool) error {
	finished := e.Finish(ctx)
	if keep {
		e.backend.keep(e)
		return finished
	}
	ended := e.endSystemUnderTest(ctx)
	if ended != nil {
		e.plane.spoil("the system under test could not be ended")
	}
	return errors.Join(finished, ended, e.backend.giveBack(ctx, e.plane))
}

// endSystemUnderTest stops reporters and aggregators, all at once.
func (e *Environment) endSystemUnderTest(ctx context.Context) error {
	units := append([]*child(nil), e.aggregators...)
	for _, n := range e.plane.nodeList() {
		if r := n.reporterUnit(); r != nil {
			units = append(units, r)
		}
	}
	errs := make([]error, len(units))
	var all sync.WaitGroup
	for i, u := range units {
		all.Go(func() { errs[i] = u.Stop(ctx) })
	}
	all.Wait()
	return errors.Join(errs...)
}
