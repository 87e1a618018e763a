package sim

import (
	"slices"
	"time"

	"github.com/kmsharness/kmsharness/aggregator/core"
	"github.com/kmsharness/kmsharness/aggregator/reconcile"
	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/backend/sim/kernel"
	"github.com/kmsharness/kmsharness/harness/history"
)

// aggregator drives aggregator/reconcile as aggregator/controller does, in virtual time: it caches what decisions rest on, makes one
// pass at a time, and sends the requests that a pass asks for.
type aggregator struct {
	proc
	op        operator // that it was told
	c         *conn
	dialled   []func(*conn, error) // who waits for a connection
	informers []*informer
	cr, co    *informer
	config    *informer
	health    *informer // with reporters that stream; else nil
	nodes     *informer
	reports   *reports
	elector   *elector // nil for one that runs alone
	liveness  reconcile.Liveness

	terms   int // counts the times of being in charge, and of not being
	leading bool
	busy    bool                  // a pass is under way
	dirty   bool                  // another one is due
	passes  *reconcile.Reconciler // of this term
	backoff time.Duration
	wake    *kernel.Timer
}

// Measured on the local backend: how long an aggregator boots, and how long it thinks before a pass.
const (
	leastAggregator, mostAggregator = 80 * time.Millisecond, 200 * time.Millisecond
	leastThinking, mostThinking     = 200 * time.Microsecond, time.Millisecond
)

func newAggregator(w *world, instance, of int) *aggregator {
	a := &aggregator{proc: proc{w: w, id: history.Process{Role: history.RoleAggregator, APIServer: w.apiServer, Instance: instance}}}
	a.reports = &reports{a: a}
	if of > 1 && !w.hooks.NoElection {
		a.elector = &elector{a: a}
	}
	a.init = a.reset
	a.boot = func(ready func()) { a.after(w.k.Between(leastAggregator, mostAggregator), ready) }
	a.up = func() {
		for _, m := range a.informers {
			m.list()
		}
		a.checkLiveness()
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
		for _, c := range slices.Clone(w.conns) {
			if c.through == &a.proc {
				c.fail(errReset)
			}
		}
		a.disconnect()
	}
	return a
}

func (a *aggregator) reset() {
	a.op = a.w.configured(history.RoleAggregator)
	a.cr, a.co = newInformer(a, a.op.crKey()), newInformer(a, a.op.coKey())
	a.config, a.nodes = newInformer(a, a.w.configKey()), newInformer(a, keyOf(nodeObjects(), ""))
	a.informers = []*informer{a.cr, a.co, a.config, a.nodes}
	if a.w.connectivity == history.ConnectStream {
		a.health = newInformer(a, healthKey(a.op))
		a.informers = append(a.informers, a.health)
	}
	*a.reports = reports{a: a}
	a.liveness = reconcile.Liveness{Interval: a.w.timing.Interval}
	if a.elector != nil {
		*a.elector = elector{a: a}
	}
}

// synced begins to work, or to compete, when every informer has its first list.
func (a *aggregator) synced() {
	switch {
	case slices.ContainsFunc(a.informers, func(m *informer) bool { return !m.full }):
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
	if a.health != nil {
		a.reports.lead()
	}
	a.leading, a.passes, a.backoff, a.busy = true, reconcile.New(a.reconciling()), 0, false
	a.changed()
}

// rest ends a term.
func (a *aggregator) rest() {
	if !a.w.hooks.Streams.OutlivesTerm {
		a.reports.rest()
	}
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
	a.w.k.After(d+a.w.k.Between(leastThinking, mostThinking), a.inTerm(a.pass))
}

// pass begins one, and do carries out what it asks for until it is done.
func (a *aggregator) pass() {
	if a.busy || !a.dirty {
		return
	}
	a.busy, a.dirty = true, false
	a.do(a.passes.Begin(a.clock()))
}

func (a *aggregator) do(action reconcile.Action) {
	switch action.Kind {
	case reconcile.Refresh:
		a.refresh(func(s reconcile.State, err error) { a.do(a.passes.Refreshed(s, a.clock(), err)) })
	case reconcile.Write:
		a.write(action.Write, func(err error) { a.do(a.passes.Wrote(err)) })
	default:
		a.passed(action)
	}
}

// passed plans the next pass, as a work queue does: one that failed is made again soon.
func (a *aggregator) passed(done reconcile.Action) {
	a.busy = false
	a.wake.Stop()
	a.reports.passed(done)
	switch {
	case done.Err != nil:
		a.backoff = min(max(2*a.backoff, reconcile.WriteRetryMin), reconcile.WriteRetryMax)
		a.dirty = true
		if a.w.hooks.Hammer {
			a.backoff = 0
		}
		a.soon(a.backoff)
		return
	case a.dirty:
		a.soon(0)
	case !a.w.hooks.NoWake:
		a.wake = a.w.k.After(reconcile.WakeAfter(done.NextWake, a.clock(), a.w.timing.Interval), a.inTerm(a.changed))
	}
	a.backoff = 0
}

func (a *aggregator) reconciling() reconcile.Config {
	c := reconcile.Config{Operator: a.op.core, Interval: a.w.timing.Interval, Union: a.w.union, Latest: a.latest, Decide: a.w.cores.Decide, Streams: a.reports.sessions}
	if a.w.hooks.EarlyUnion {
		c.Unite = func(_ core.Input, d core.Decision) core.Decision { return d }
	}
	if a.w.hooks.CarelessUnion {
		c.DeferUnion = func(_ core.Decision, rollups, _ error) bool { return rollups != nil }
	}
	return c
}

// request is one of its own.
func (a *aggregator) request(r request) request {
	r.user, r.agent = contract.AggregatorIdentity, "kms-health-aggregator"
	return a.w.hooks.sent(r.relayed, r)
}
