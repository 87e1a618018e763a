package sim

import (
	"slices"
	"time"

	"github.com/kmsharness/kmsharness/aggregator/core"
	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/backend/sim/kernel"
	"github.com/kmsharness/kmsharness/harness/history"
)

// aggregator is what carries out the decisions of aggregator/core: it mirrors what they rest on, looks at the API server before it
// writes, and writes.
type aggregator struct {
	proc
	op        operator // that it was told
	c         *conn
	dialled   []func(*conn, error) // who waits for a connection
	parked    []parked
	mirrors   []*mirror
	cr, co    *mirror
	config    *mirror
	nodes     *mirror
	elector   *elector      // nil for one that runs alone
	pulses    time.Duration // its back-off while no answer comes
	throttled time.Time     // when an API server last had too many requests
	heard     time.Time     // when an answer last showed that the API server has its etcd

	terms   int // counts the times of being in charge, and of not being
	leading bool
	busy    bool // a step is under way
	dirty   bool // another one is due
	memory  core.Memory
	reader  reader
	backoff time.Duration
	wake    *kernel.Timer
}

// Time-outs of the real aggregator (aggregator/controller).
const (
	requestTimeout                  = 5 * time.Second
	watchRetryMin, watchRetryMax    = 50 * time.Millisecond, 400 * time.Millisecond
	backoffReset                    = 2 * time.Minute // client-go
	writeRetryMin, writeRetryMax    = 25 * time.Millisecond, 400 * time.Millisecond
	ownViewMemory                   = 10 * time.Second
	leastAggregator, mostAggregator = 80 * time.Millisecond, 200 * time.Millisecond
	leastThinking, mostThinking     = 200 * time.Microsecond, time.Millisecond
)

func newAggregator(w *world, instance, of int) *aggregator {
	a := &aggregator{proc: proc{w: w, id: history.Process{Role: history.RoleAggregator, APIServer: w.apiServer, Instance: instance}}}
	if of > 1 && !w.seams.NoElection {
		a.elector = &elector{a: a}
	}
	a.init = a.reset
	a.boot = func(ready func()) { a.after(w.k.Between(leastAggregator, mostAggregator), ready) }
	a.up = func() {
		for _, m := range a.mirrors {
			m.list()
		}
		a.pulse()
	}
	a.proc.term = func(ended func()) {
		if a.elector == nil {
			a.after(w.k.Between(time.Millisecond, 10*time.Millisecond), ended)
			return
		}
		a.elector.release(ended)
	}
	a.gone = func() {
		a.rest()
		a.disconnect()
	}
	return a
}

func (a *aggregator) reset() {
	a.op = a.w.told(history.RoleAggregator)
	a.cr, a.co = newMirror(a, a.op.crKey()), newMirror(a, a.op.coKey())
	a.config, a.nodes = newMirror(a, a.w.configKey()), newMirror(a, keyOf(nodeObjects(), ""))
	a.mirrors = []*mirror{a.cr, a.co, a.config, a.nodes}
	a.heard, a.throttled, a.parked, a.pulses = time.Time{}, time.Time{}, nil, 0
	if a.elector != nil {
		*a.elector = elector{a: a}
	}
}

// synced begins to work, or to compete, when every mirror has its first list.
func (a *aggregator) synced() {
	switch {
	case slices.ContainsFunc(a.mirrors, func(m *mirror) bool { return !m.full }):
	case a.elector == nil:
		a.lead()
	default:
		a.elector.begin()
	}
}

// lead begins a term: what an earlier one knew may be long out of date.
func (a *aggregator) lead() {
	if a.leading {
		return
	}
	a.terms++
	a.leading, a.memory, a.backoff, a.busy, a.reader = true, core.Memory{}, 0, false, reader{}
	a.changed()
}

// rest ends a term.
func (a *aggregator) rest() {
	a.terms++
	a.leading, a.busy, a.dirty = false, false, false
	a.wake.Stop()
}

// inTerm makes something that happens in this term or never.
func (a *aggregator) inTerm(f func()) func() {
	term := a.terms
	return a.bind(func() {
		if a.terms == term {
			f()
		}
	})
}

// changed lets a step follow.
func (a *aggregator) changed() {
	if !a.leading || a.dirty {
		return
	}
	a.dirty = true
	if !a.busy {
		a.soon(0)
	}
}

func (a *aggregator) soon(d time.Duration) {
	a.w.k.After(d+a.w.k.Between(leastThinking, mostThinking), a.inTerm(a.step))
}

// step looks, decides, and carries it out. From the mirrors it learns when to look, from the API server what to write: after an
// outage the mirrors are old.
func (a *aggregator) step() {
	if a.busy || !a.dirty {
		return
	}
	a.busy, a.dirty = true, false
	in, ok := a.input(a.cached())
	if !ok {
		a.stepped(core.Decision{Memory: a.memory}, nil)
		return
	}
	d := a.decide(in)
	if !a.writes(d) {
		a.stepped(d, nil)
		return
	}
	if a.w.seams.TrustWatches {
		a.carryOut(in, d)
		return
	}
	a.live(func(v view, err error) {
		if in, ok = a.input(v); err != nil || !ok {
			a.stepped(core.Decision{Memory: a.memory}, err)
			return
		}
		a.carryOut(in, a.w.cores.Decide(in, a.memory))
	})
}

// decide asks the core about what it sees. What others put in its place is asked every time.
func (a *aggregator) decide(in core.Input) core.Decision {
	if a.w.cores.again {
		return a.reader.Step(in, a.memory)
	}
	return a.w.cores.Decide(in, a.memory)
}

func (a *aggregator) writes(d core.Decision) bool {
	return d.WriteRollups || !d.Remove.Empty() || d.WriteClusterOperator && a.co.latest() != nil
}

// stepped ends a step: a failure is tried again soon.
func (a *aggregator) stepped(d core.Decision, err error) {
	a.busy, a.memory = false, d.Memory
	a.wake.Stop()
	switch {
	case err != nil:
		a.backoff = min(max(2*a.backoff, writeRetryMin), writeRetryMax)
		a.dirty = true
		if a.w.seams.Hammer {
			a.backoff = 0
		}
		a.soon(a.backoff)
		return
	case a.dirty:
		a.soon(0)
	case !a.w.seams.NoWake:
		at := a.w.k.Now().Add(a.w.timing.Interval / 2) // a timer does not notice that the clock is set
		if due := d.NextWake.Add(-a.w.ahead); !d.NextWake.IsZero() && due.Before(at) {
			at = due
		}
		a.wake = a.w.k.At(at, a.inTerm(a.changed))
	}
	a.backoff = 0
}

// input is what the core decides from; ok is false while there is no CR.
func (a *aggregator) input(v view) (in core.Input, ok bool) {
	if v.cr == nil {
		return in, false
	}
	return core.Input{Now: a.clock(), Interval: a.w.timing.Interval, Nodes: a.reader.expected(v.nodes), KMSActive: active(v.config),
		Observed: a.reader.observed(v.cr, a.op.core, a.w.cores.again), ClusterOperator: a.reader.operator(v.co), Union: a.w.union}, true
}

// request is one of its own.
func (a *aggregator) request(r request) request {
	r.user, r.agent = contract.AggregatorIdentity, "kms-health-aggregator"
	return a.w.seams.sent("", r)
}
