package live

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/kmsharness/kmsharness/harness/backend/operated"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

// switchLoad writes objects while an operator switches.
type switchLoad struct {
	e    *Environment
	ctx  context.Context // of everything around the operator
	work *sync.WaitGroup

	mu  sync.Mutex
	end context.CancelFunc // nil: nothing is switched
}

// switching is told by every decision whether the operator is at something, and keeps the load in step.
func (l *switchLoad) switching(busy bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case busy && l.end == nil && l.ctx.Err() == nil:
		ctx, cancel := context.WithCancel(l.ctx)
		l.end = cancel
		l.work.Go(func() { l.writeWhile(ctx) })
	case !busy && l.end != nil:
		l.end()
		l.end = nil
	}
}

// writeWhile writes new and old objects until the switch is over, an object of each size after it, and looks at all that is in etcd.
func (l *switchLoad) writeWhile(ctx context.Context) {
	mine := fmt.Sprintf("load-%d", time.Now().UnixNano())
	l.e.data.setBusy(mine)
	defer l.e.data.rested(mine)
	ticker := time.NewTicker(operated.LoadEvery)
	defer ticker.Stop()
	for i := 0; ctx.Err() == nil; i++ {
		select {
		case <-ctx.Done():
		case <-ticker.C:
			l.e.data.loadOne(context.WithoutCancel(ctx), i, mine) // what has begun ends: a write that is given up may have been made
		}
	}
	if l.ctx.Err() == nil && l.e.data.writeSizes(l.ctx, scenario.DataSizes()) == nil {
		_ = l.e.data.takeInventory(l.ctx) // the last look, when all is over, must succeed
	}
}

// askReadiness is the kubelet's readiness probe: without it an API server asks its plugins once a minute, and nowhere is it without.
func (l *switchLoad) askReadiness() {
	ticker := time.NewTicker(operated.ReadinessEvery)
	defer ticker.Stop()
	for {
		select {
		case <-l.ctx.Done():
			return
		case <-ticker.C:
		}
		for _, n := range l.e.serving() {
			n.probeReadiness(l.ctx)
		}
	}
}

// probeReadiness asks once. The answer is the API server's own business: that it looks is what matters.
func (n *Node) probeReadiness(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, RequestTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, n.direct().url+"/readyz", nil)
	if err != nil {
		return
	}
	if response, err := n.direct().http.Do(request); err == nil {
		response.Body.Close()
	}
}
