package sim

import (
	"errors"
	"time"

	"github.com/kmsharness/kmsharness/harness/backend/operated"
	"github.com/kmsharness/kmsharness/harness/backend/sim/kernel"
	objects "github.com/kmsharness/kmsharness/harness/backend/sim/store"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/operator/core"
	"github.com/kmsharness/kmsharness/operator/exchange"
)

// operatorProc is the API server operator: what carries out the decisions of operator/core. It reads and writes through an API server
// that the load balancer knows.
//
// What it leaves out: its connections. It sees at once what API servers know, and goes on with what it saw last when none answers; a request is
// lost with its API server.
type operatorProc struct {
	proc
	e     *environment
	shift *shift // nil while it does not run
	asked int    // requests, each through another API server
	older bool   // of a release before KMS, from its next start on
}

// shift is one life of the operator. What it remembers ends with it.
type shift struct {
	o     *operatorProc
	k     *kernel.Kernel
	wake  *kernel.Timer
	due   time.Time // when that is; zero: nothing is planned
	older bool      // of a release before KMS
	busy  bool      // a step is under way
	news  bool      // something has changed since it began

	caches    caches
	failing   exchange.Failing
	published exchange.PublishedStatus
	migration exchange.Job[core.Migration]
	preflight exchange.Job[core.Preflight]
}

const (
	operatorUser                = "kmsharness-operator"
	leastOperator, mostOperator = time.Millisecond, 5 * time.Millisecond // until it runs
)

func newOperatorProc(e *environment) *operatorProc {
	w := e.w
	o := &operatorProc{proc: proc{w: w, id: history.Process{Role: history.RoleOperator, APIServer: w.apiServer}}, e: e}
	o.init = func() {
		o.shift = &shift{o: o, k: w.k, older: o.older, failing: exchange.Failing{}}
	}
	o.boot = func(ready func()) { o.after(w.k.Between(leastOperator, mostOperator), ready) }
	o.up = func() { o.shift.notify() }
	o.gone = func() {
		o.shift.wake.Stop()
		o.shift = nil
	}
	w.changed = func(ev objects.Event) {
		if s := o.shift; s != nil && s.watches(ev.Version.Key) {
			s.notify()
		}
	}
	return o
}

// errEnded ends what an operator does when it has ended itself.
var errEnded = errors.New("the operator has ended")

// ended is an error if its life is over.
func (s *shift) ended() error {
	if s.o.shift != s {
		return errEnded
	}
	return nil
}

// notify wakes the operator: something has changed.
func (s *shift) notify() {
	if s.news = s.busy; !s.busy {
		s.pollIn(s.k.Between(leastThinking, mostThinking) + s.o.w.observer.watchLag())
	}
}

// pollIn looks after a time, if it would not sooner.
func (s *shift) pollIn(d time.Duration) {
	at := s.k.Now().Add(d)
	if !s.due.IsZero() && !at.Before(s.due) {
		return
	}
	s.wake.Stop()
	s.wake, s.due = s.o.after(d, s.step), at
}

// step looks, decides and acts once, in a task.
func (s *shift) step() {
	s.due, s.busy, s.news = time.Time{}, true, false
	s.k.Go(func() {
		again := s.once()
		if s.ended() != nil {
			return
		}
		s.busy = false
		s.pollIn(again)
		if s.news {
			s.notify()
		}
	})
}

// once says when to look again.
func (s *shift) once() time.Duration {
	seen, err := s.observe()
	if err != nil {
		return s.failed(s.writeConfig(err))
	}
	plan := s.o.decide(seen.Observed)
	for _, a := range plan.Actions {
		if err := s.carry(seen, a); err != nil {
			return s.failed(err)
		}
	}
	if err := s.say(exchange.WantedStatus{Conditions: plan.Conditions, Wanted: seen.Wanted, Preflight: s.preflight.Result}); err != nil {
		return s.failed(err)
	}
	return exchange.Again(plan)
}

func (s *shift) failed(err error) time.Duration {
	if exchange.Behind(err) {
		return exchange.Pause
	}
	return exchange.Retry
}

// decide asks the core, and leaves in the history what came of it.
func (o *operatorProc) decide(seen core.Observed) core.Plan {
	p := o.e.pods
	plan := o.w.cores.Operate(seen, operated.CoreOptions(o.w.timing), o.w.k.Now())
	d := operated.Decision(seen, plan)
	if p.decided == nil || !operated.Same(*p.decided, *d) {
		o.w.record("backend", d)
	}
	p.decided = d
	p.switching(d.Stage != "")
	return plan
}
