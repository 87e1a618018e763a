package operator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/kmsharness/kmsharness/operator/config"
	"github.com/kmsharness/kmsharness/operator/core"
)

// Options of an operator. All are required but Check, Contents and Decide.
type Options struct {
	APIServer
	REST *rest.Config
	// Core are the options of its decisions, Config those of what it reads.
	Core   core.Options
	Config config.Options
	Clock  clock.WithTicker
	// Check bounds a pre-flight check; 0 is half a minute.
	Check time.Duration
	// Random makes key material.
	Random io.Reader
	Log    *slog.Logger
	// Contents may change what a Secret with credentials is taken to hold; nil: it is as it is. See Decide.
	Contents func(version string, data map[string][]byte) map[string][]byte
	// Decide is core.Decide, unless another one is to be tried.
	Decide func(core.Observed, core.Options, time.Time) core.Plan
}

// encrypted are the resources that are encrypted, as an EncryptionConfiguration names them: "secrets".
func (o Options) encrypted() (names []string) {
	for _, r := range o.Encrypted {
		names = append(names, r.GroupResource().String())
	}
	return names
}

// checkTimeout bounds a pre-flight check.
const checkTimeout = 30 * time.Second

const (
	// Pause follows an action: no event announces that an API server has loaded a file.
	Pause = 200 * time.Millisecond
	// pollInterval is the longest pause: no event announces that an API server has started or ended.
	pollInterval = time.Second
	// retry follows a failure.
	retry = time.Second
	// requestTimeout bounds each request to the API server.
	requestTimeout = 10 * time.Second
)

// Operator of one API server.
type Operator struct {
	Options
	client  kubernetes.Interface
	dynamic dynamic.Interface
	sources *sources
	changed chan struct{} // somebody saw something
	work    sync.WaitGroup

	migration job[core.Migration]
	preflight job[core.Preflight]
	used      core.Preflight // by which the newest key was made

	failing   failing
	failure   core.Failure
	published published

	kept           memo[Kept]
	configurations memo[Configuration]
}

// New prepares an operator; nothing is contacted before Run.
func New(o Options) (*Operator, error) {
	if o.Decide == nil {
		o.Decide = core.Decide
	}
	if o.Check == 0 {
		o.Check = checkTimeout
	}
	client, err := kubernetes.NewForConfig(o.REST)
	if err != nil {
		return nil, fmt.Errorf("operator of %s: %w", o.Component, err)
	}
	dyn, err := dynamic.NewForConfig(o.REST)
	if err != nil {
		return nil, fmt.Errorf("operator of %s: %w", o.Component, err)
	}
	return with(o, client, dyn), nil
}

// with is an operator of a cluster with clients.
func with(o Options, client kubernetes.Interface, dyn dynamic.Interface) *Operator {
	op := &Operator{Options: o, client: client, dynamic: dyn, changed: make(chan struct{}, 1), failing: failing{}}
	op.sources = newSources(op)
	return op
}

// Run works until ctx ends, and returns when nothing of it runs any more. Migrations and checks end with it.
func (o *Operator) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer o.work.Wait()
	defer cancel()
	if err := o.sources.start(ctx, &o.work); err != nil {
		return nil // stopped before the first list: there is nothing to undo
	}
	for ctx.Err() == nil {
		o.await(ctx, o.step(ctx))
	}
	return nil
}

// notify wakes the operator: something has changed.
func (o *Operator) notify() {
	select {
	case o.changed <- struct{}{}:
	default: // a look is due already
	}
}

// await returns when something has changed, or after a time; 0: only when something has.
func (o *Operator) await(ctx context.Context, again time.Duration) {
	var timer <-chan time.Time
	if again > 0 {
		t := o.Clock.NewTimer(again)
		defer t.Stop()
		timer = t.C()
	}
	select {
	case <-ctx.Done():
	case <-o.changed:
	case <-timer:
	}
}

// step looks, decides and acts once, and says when to look again.
func (o *Operator) step(ctx context.Context) time.Duration {
	seen, err := o.observe()
	if err != nil {
		return o.failed(ctx, "look", o.reportUnreadable(ctx, err))
	}
	seen.Failure = o.failure
	plan := o.Decide(seen.Observed, o.Core, o.Clock.Now())
	if what, err := o.carryAll(ctx, seen, plan.Actions); err != nil {
		if seen.Failure.Lasts(o.Clock.Now()) {
			err = errors.Join(err, o.say(ctx, plan.Conditions, o.published.preflight))
		}
		return o.failed(ctx, what, err)
	}
	if err := o.say(ctx, plan.Conditions, handshake(seen.Wanted, o.checked(seen.Wanted))); err != nil {
		return o.failed(ctx, "say", err)
	}
	return again(plan)
}

// checked is the check whose result is published: the last one, or, until something else is asked for, the one by which the key was made.
func (o *Operator) checked(w core.Wanted) core.Preflight {
	if o.used.Hash != w.Hash() {
		o.used = core.Preflight{}
	}
	return cmp.Or(o.preflight.get(), o.used)
}

// carryAll carries out actions until one fails, and notes that. Of one that failed because the caches were behind nothing is known.
func (o *Operator) carryAll(ctx context.Context, seen Seen, actions []core.Action) (what string, err error) {
	for _, a := range actions {
		what = fmt.Sprintf("%T", a)
		o.Log.Info("action", "kind", what, "action", fmt.Sprintf("%+v", a))
		if err = o.carry(ctx, seen, a); err != nil && !behind(err) {
			o.failure = o.failure.Next(err, o.Clock.Now())
		}
		if err != nil {
			return what, err
		}
	}
	o.failure = core.Failure{}
	return "", nil
}

// again is how long to wait after a plan was carried out.
func again(p core.Plan) time.Duration {
	if len(p.Actions) > 0 {
		return Pause
	}
	if p.Again == 0 {
		return pollInterval
	}
	return min(p.Again, pollInterval)
}

// failed tells of what went wrong. A conflict is no failure: the caches were behind.
func (o *Operator) failed(ctx context.Context, what string, err error) time.Duration {
	switch {
	case ctx.Err() != nil:
	case behind(err):
		o.Log.Info("the caches were behind", "action", what)
		return Pause
	default:
		o.Log.Warn("an action failed and is tried again", "action", what, "error", err.Error())
	}
	return retry
}
