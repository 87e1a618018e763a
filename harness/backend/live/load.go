package live

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/kmsharness/kmsharness/harness/scenario"
)

// loadEvery is how often the load of a switch writes: often enough that several writes meet every stage.
const loadEvery = 50 * time.Millisecond

// watched does something to the encryption with an eye on the data: objects of all sizes are written before it, new and old ones
// while it lasts, and again after it. Then every object in etcd is looked at.
func (e *Environment) watched(ctx context.Context, do func(context.Context) error) error {
	if err := e.writeSizes(ctx, append(scenario.DataSizes(), scenario.MaxObjectBytes)); err != nil {
		return err
	}
	end := e.startLoad(ctx)
	err := do(ctx)
	end()
	if err != nil {
		return err
	}
	if err := e.writeSizes(ctx, scenario.DataSizes()); err != nil {
		return err
	}
	return e.census(ctx)
}

// writeSizes writes an object of each size, through one API server after another.
func (e *Environment) writeSizes(ctx context.Context, sizes []int) error {
	nodes := e.serving()
	for i, size := range sizes {
		if len(nodes) == 0 {
			return nil
		}
		if err := e.writeNew(ctx, nodes[i%len(nodes)], size); err != nil {
			return err
		}
	}
	return nil
}

// startLoad writes until it is ended: every second time a new object, otherwise one that is being migrated, perhaps.
func (e *Environment) startLoad(ctx context.Context) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	mine := fmt.Sprintf("load-%d", time.Now().UnixNano())
	e.setBusy(mine)
	var running sync.WaitGroup
	running.Go(func() {
		ticker := time.NewTicker(loadEvery)
		defer ticker.Stop()
		for i := 0; ; i++ {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				e.loadOne(context.WithoutCancel(ctx), i, mine) // what has begun ends: a write that is given up may have been made
			}
		}
	})
	return func() {
		cancel()
		running.Wait()
		e.setBusy("")
	}
}

func (e *Environment) setBusy(name string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.busy = name
}

// rested is the end of a load, unless another one has begun.
func (e *Environment) rested(name string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.busy == name {
		e.busy = ""
	}
}

func (e *Environment) loadOne(ctx context.Context, i int, mine string) {
	nodes := e.serving()
	if len(nodes) == 0 {
		return
	}
	n, sizes := nodes[i%len(nodes)], scenario.DataSizes()
	if i%2 == 0 {
		_ = e.writeNew(ctx, n, sizes[i/2%len(sizes)]) // whatever came of it is recorded
		return
	}
	_ = e.writeOne(ctx, n, mine, scenario.LoadValue(mine, i))
}
