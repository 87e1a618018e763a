package live

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/kmsharness/kmsharness/harness/backend/operated"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

// switching is told by every decision whether the operator is at something, and keeps the load in step.
func (p *pods) switching(busy bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case busy && p.load == nil && p.ctx.Err() == nil:
		ctx, cancel := context.WithCancel(p.ctx)
		p.load = cancel
		p.work.Go(func() { p.writeWhile(ctx) })
	case !busy && p.load != nil:
		p.load()
		p.load = nil
	}
}

// writeWhile writes new and old objects until the switch is over, an object of each size after it, and looks at all that is in etcd.
func (p *pods) writeWhile(ctx context.Context) {
	mine := fmt.Sprintf("load-%d", time.Now().UnixNano())
	p.e.data.setBusy(mine)
	defer p.e.data.rested(mine)
	ticker := time.NewTicker(operated.LoadEvery)
	defer ticker.Stop()
	for i := 0; ctx.Err() == nil; i++ {
		select {
		case <-ctx.Done():
		case <-ticker.C:
			p.e.data.loadOne(context.WithoutCancel(ctx), i, mine) // what has begun ends: a write that is given up may have been made
		}
	}
	if p.ctx.Err() == nil && p.e.data.writeSizes(p.ctx, scenario.DataSizes()) == nil {
		_ = p.e.data.takeInventory(p.ctx) // the last look, when all is over, must succeed
	}
}

// askReadiness is the kubelet's readiness probe: without it an API server asks its plugins once a minute, and nowhere is it without.
func (p *pods) askReadiness() {
	ticker := time.NewTicker(operated.ReadinessEvery)
	defer ticker.Stop()
	for {
		select {
		case <-p.ctx.Done():
			return
		case <-ticker.C:
		}
		for _, n := range p.e.serving() {
			n.probeReadiness(p.ctx)
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
