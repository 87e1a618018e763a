package live

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/internal/poll"
)

// loadEvery is how often the load of a switch writes: often enough that several writes meet every stage. Once loads have made loadObjects, a
// new one comes once in loadSeldom: each switch reads all of them, and hours of switches would do little else.
const (
	loadEvery   = 50 * time.Millisecond
	loadObjects = 200
	loadSeldom  = 20
)

// underLoad changes the encryption by do. It writes objects of all sizes before, new and existing ones meanwhile, and again after it. Then it reads
// every object in etcd.
func (ds *dataset) underLoad(ctx context.Context, do func(context.Context) error) error {
	if err := ds.writeFirst(ctx); err != nil {
		return err
	}
	end := ds.startLoad(ctx)
	err := do(ctx)
	end()
	if err != nil {
		return err
	}
	if err := ds.writeSizes(ctx, scenario.DataSizes()); err != nil {
		return err
	}
	return ds.takeInventory(ctx)
}

// writeFirst writes what must be there before something changes: an object of each size, and the largest once.
func (ds *dataset) writeFirst(ctx context.Context) error {
	sizes := scenario.DataSizes()
	if ds.largest.CompareAndSwap(false, true) {
		sizes = append(sizes, scenario.MaxObjectBytes)
	}
	return ds.writeSizes(ctx, sizes)
}

// writeSizes writes an object of each size, through one API server after another.
func (ds *dataset) writeSizes(ctx context.Context, sizes []int) error {
	nodes := ds.e.serving()
	for i, size := range sizes {
		if len(nodes) == 0 {
			return nil
		}
		if err := ds.writeNew(ctx, nodes[i%len(nodes)], size); err != nil {
			return err
		}
	}
	return nil
}

// startLoad writes until it is ended.
func (ds *dataset) startLoad(ctx context.Context) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { ds.load(ctx, loadEvery) })
	return func() {
		cancel()
		running.Wait()
	}
}

// load writes until ctx ends: every second time a new object at first, otherwise one that is being migrated, perhaps.
func (ds *dataset) load(ctx context.Context, every time.Duration) {
	mine := fmt.Sprintf("load-%d", time.Now().UnixNano())
	ds.setBusy(mine)
	defer ds.rested(mine)
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	i := 0
	poll.Each(ctx, ticker.C, func() {
		ds.loadOne(context.WithoutCancel(ctx), i, mine) // what has begun ends: a write that is given up may have been made
		i++
	})
}

func (ds *dataset) setBusy(name string) {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	ds.busy = name
}

// rested is the end of a load, unless another one has begun.
func (ds *dataset) rested(name string) {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	if ds.busy == name {
		ds.busy = ""
	}
}

// few reports whether loads have made few objects so far, and counts one more.
func (ds *dataset) few() bool {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	ds.loaded++
	return ds.loaded <= loadObjects
}

func (ds *dataset) loadOne(ctx context.Context, i int, mine string) {
	nodes := ds.e.serving()
	if len(nodes) == 0 {
		return
	}
	n, sizes := nodes[i%len(nodes)], scenario.DataSizes()
	if i%loadSeldom == 0 || i%2 == 0 && ds.few() {
		_ = ds.writeNew(ctx, n, sizes[i/2%len(sizes)]) // whatever came of it is recorded
		return
	}
	_ = ds.writeOne(ctx, n, mine, scenario.LoadValue(mine, i))
}
