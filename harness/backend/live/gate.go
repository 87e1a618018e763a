package live

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/kmsharness/kmsharness/harness/history"
)

// gate holds events back until the history has its heading: recorders run before the engine can ask for Heading, but
// a history begins with its run event.
type gate struct {
	log    *history.Log
	headed atomic.Bool // set under the log's lock, read under mu
	cancel func()

	mu      sync.Mutex
	pending []held
	closed  bool
}

type held struct {
	at      time.Time
	source  string
	payload any
}

func newGate(log *history.Log) *gate {
	g := &gate{log: log}
	g.cancel = log.Subscribe(func(e history.Event) {
		if e.Kind == history.KindRun {
			g.headed.Store(true)
		}
	})
	return g
}

// Record implements record.Sink. After close it does nothing: the run is over.
func (g *gate) Record(at time.Time, source string, payload any) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return
	}
	g.pending = append(g.pending, held{at, source, payload})
	g.flush()
}

// Flush lets out what was held back, if it may.
func (g *gate) Flush() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.flush()
}

func (g *gate) flush() {
	if !g.headed.Load() {
		return
	}
	for _, h := range g.pending {
		g.log.Record(h.at, h.source, h.payload)
	}
	g.pending = nil
}

func (g *gate) close() {
	g.mu.Lock()
	g.flush()
	g.closed, g.pending = true, nil
	g.mu.Unlock()
	g.cancel()
}
