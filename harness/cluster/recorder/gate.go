package recorder

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kmsharness/kmsharness/harness/history"
)

// Gate holds events back until the history has its run metadata: recorders run before the engine can ask the environment
// for it, but a history begins with its run event. In virtual time it also orders what is recorded in one instant, which
// many goroutines do in any order: two runs with one seed have the same history, byte by byte.
type Gate struct {
	log     *history.Log
	ordered bool
	headed  atomic.Bool // set under the log's lock, read under mu
	cancel  func()

	mu      sync.Mutex
	pending []held
	ends    bool // something waits for the end of this instant
	closed  bool
}

type held struct {
	at      time.Time
	source  string
	payload any
}

func NewGate(log *history.Log, ordered bool) *Gate {
	g := &Gate{log: log, ordered: ordered}
	g.cancel = log.Subscribe(func(e history.Event) {
		if e.Kind == history.KindRun {
			g.headed.Store(true)
		}
	})
	return g
}

// Record implements record.Sink. After close it does nothing: the run is over.
func (g *Gate) Record(at time.Time, source string, payload any) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return
	}
	g.pending = append(g.pending, held{at, source, payload})
	g.letOut()
}

// letOut releases what is held back: at once in real time, and in virtual time at the end of the instant.
func (g *Gate) letOut() {
	switch {
	case !g.ordered:
		g.flush()
	case !g.ends:
		g.ends = true
		time.AfterFunc(Instant, g.settle)
	}
}

// Instant is the least time that passes.
const Instant = time.Nanosecond

// settle lets out what was recorded in an instant that is over.
func (g *Gate) settle() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ends = false
	g.flush()
}

// order is that of two events, which may be recorded at the same time: by time, by source and by what they are about.
func (h held) order(o held) int {
	return cmp.Or(h.at.Compare(o.at), cmp.Compare(h.source, o.source), cmp.Compare(about(h.payload), about(o.payload)))
}

// about is what a payload is about. Events about one thing have one author, in whose order they stay.
func about(payload any) string {
	switch p := payload.(type) {
	case *history.Process:
		return fmt.Sprint("process ", p.Role, p.APIServer, p.Node, p.KeyID, p.Instance)
	case *history.Encryption:
		return fmt.Sprint("encryption ", p.Node)
	case *history.Data:
		return "data " + p.Object
	case history.Of:
		return about(p.Payload)
	case *history.Object:
		return fmt.Sprint("object ", p.Resource, p.Name)
	case *history.Request:
		return "request " + p.AuditID
	case *history.Call:
		return "call " + p.UID
	case *history.Envelope:
		return "envelope " + p.UID
	}
	return fmt.Sprintf("%T", payload)
}

// Flush lets out what was held back, if it may.
func (g *Gate) Flush() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.letOut()
}

func (g *Gate) flush() {
	if !g.headed.Load() {
		return
	}
	if g.ordered {
		slices.SortStableFunc(g.pending, held.order)
	}
	for _, h := range g.pending {
		g.log.Record(h.at, h.source, h.payload)
	}
	g.pending = nil
}

func (g *Gate) Close() {
	g.mu.Lock()
	g.flush()
	g.closed, g.pending = true, nil
	g.mu.Unlock()
	g.cancel()
}
