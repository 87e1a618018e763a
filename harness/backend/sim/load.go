package sim

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/backend/sim/store"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/reporter/publish"
)

// Load is reporters that write one object through some API servers, all of them healthy.
type Load struct {
	Nodes, Servers int
	Timing         contract.Timing // its jitter is what keeps them apart
	Together       bool            // they begin at the same instant, as after a power failure; otherwise anywhere in an interval
	Settle, For    int             // intervals before it is counted, and while it is
	Seed           int64
}

// LoadResult is what came of the writes.
type LoadResult struct {
	Writes, Failed int // Failed: with a 504, or without an answer within the reporter's deadline
	Slowest        time.Duration
	Bytes          int // of the object
}

// Load lets reporters write for a while.
func (b *Backend) Load(ctx context.Context, l Load) (LoadResult, error) {
	types, err := b.types[""]()
	if err != nil {
		return LoadResult{}, fmt.Errorf("sim backend: %w", err)
	}
	w, err := newWorld(l.Seed, history.NewLog(nil), l.Timing, store.New(types, store.Options{SSA: b.opts.SSA}))
	if err != nil {
		return LoadResult{}, err
	}
	defer w.k.Close()
	w.observer.sequence = nil
	w.cores, w.form, w.keyIDs, w.cpus = b.opts.Cores.withDefaults(), publish.Conditions, []string{"1"}, b.opts.cpus()
	if w.operator, err = operatorNamed(""); err != nil {
		return LoadResult{}, err
	}
	return l.run(ctx, w)
}

func (l Load) run(ctx context.Context, w *world) (LoadResult, error) {
	if err := w.populate(); err != nil {
		return LoadResult{}, err
	}
	w.etcd.existed()
	w.kms.existed()
	l.begin(w)
	begin := w.k.Now().Add(time.Duration(l.Settle) * l.Timing.Interval)
	end := begin.Add(time.Duration(l.For) * l.Timing.Interval)
	for at := w.k.Now(); at.Before(end); at = w.k.Now() {
		if ctx.Err() != nil {
			return LoadResult{}, ctx.Err()
		}
		w.k.RunUntil(at.Add(l.Timing.Interval))
	}
	return l.count(w, begin), nil
}

// begin starts the reporters. Their own nodes' API servers never run: they write through those of the first nodes.
func (l Load) begin(w *world) {
	var servers []*server
	for i := range l.Nodes {
		n := newNode(w, fmt.Sprintf("node-%04d", i+1), w.keyIDs)
		if len(servers) < max(l.Servers, 1) {
			w.addNode(n)
			n.server.begin("")
			n.server.phase = running
			servers = append(servers, n.server)
		}
		n.server = servers[i%len(servers)]
		n.plugins[0].existed()
		wait := time.Duration(0)
		if !l.Together {
			wait = w.k.Between(0, l.Timing.Interval)
		}
		w.k.After(wait, n.reporter.existed)
	}
}

func (l Load) count(w *world, since time.Time) (out LoadResult) {
	for _, e := range w.log.Events() {
		r := e.Request
		if r == nil || r.Verb != verbPatch || r.Received.Before(since) {
			continue
		}
		out.Writes++
		took := r.Completed.Sub(r.Received)
		out.Slowest = max(out.Slowest, took)
		if r.Code >= http.StatusBadRequest || took > l.Timing.WriteTimeout {
			out.Failed++
		}
	}
	if v, err := w.store.Get(w.crKey()); err == nil {
		out.Bytes = v.Size()
	}
	return out
}
