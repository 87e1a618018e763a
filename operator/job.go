package operator

import (
	"context"
	"sync"

	"github.com/kmsharness/kmsharness/operator/config"
	"github.com/kmsharness/kmsharness/operator/core"
	"github.com/kmsharness/kmsharness/operator/exchange"
)

// job is one thing at a time in the background. The zero value has never run.
type job[R any] struct {
	mu     sync.Mutex
	of     exchange.Job[R]
	cancel context.CancelFunc // of what runs
}

func (j *job[R]) get() R {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.of.Result
}

// forget takes the result back.
func (j *job[R]) forget() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.of.Forget()
}

// migrate begins an attempt, unless it runs already.
func (o *Operator) migrate(ctx context.Context, a core.Attempt) {
	j := &o.migration
	j.mu.Lock()
	if j.of.Runs() && j.of.Result.Attempt == a {
		j.mu.Unlock()
		return
	}
	ctx, serial := j.begin(ctx, core.Migration{Attempt: a})
	j.mu.Unlock()
	o.work.Go(func() {
		result := core.Migration{Attempt: a, Done: true}
		if err := o.rewrite(ctx, a.Key); err != nil {
			result.Done, result.Failed = false, err.Error()
			o.Log.Warn("the migration failed and is begun again", "key", a.Key, "error", err.Error())
		}
		j.end(serial, result)
		o.notify()
	})
}

// check begins a pre-flight check, unless one for the same configuration runs already.
func (o *Operator) check(ctx context.Context, p config.Plugin) {
	hash := config.Wanted{Type: config.KMS, KMS: p}.Hash()
	j := &o.preflight
	j.mu.Lock()
	if j.of.Runs() && j.of.Result.Hash == hash {
		j.mu.Unlock()
		return
	}
	ctx, serial := j.begin(ctx, core.Preflight{Hash: hash, Message: "it is under way"})
	j.mu.Unlock()
	o.work.Go(func() {
		ctx, cancel := context.WithTimeout(ctx, o.Check)
		defer cancel()
		result := o.preflightResult(ctx, p, hash)
		result.At = o.Clock.Now()
		j.end(serial, result)
		o.notify()
	})
}

// begin ends what runs; j.mu is held.
func (j *job[R]) begin(ctx context.Context, first R) (context.Context, int) {
	if j.of.Runs() {
		j.cancel()
	}
	ctx, j.cancel = context.WithCancel(ctx)
	return ctx, j.of.Begin(first)
}

// end keeps a result, unless another one was begun since.
func (j *job[R]) end(serial int, result R) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.of.End(serial, result) {
		j.cancel()
	}
}
