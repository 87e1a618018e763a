package operator

import (
	"context"
	"sync"

	"github.com/kmsharness/kmsharness/operator/config"
	"github.com/kmsharness/kmsharness/operator/core"
)

// job is one thing at a time in the background. The zero value has never run.
type job[R any] struct {
	mu     sync.Mutex
	result R                  // of the last one that has ended, or what is said of the one that runs
	cancel context.CancelFunc // nil: none runs
	serial int
}

func (j *job[R]) get() R {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.result
}

// forget takes the result back.
func (j *job[R]) forget() {
	j.mu.Lock()
	defer j.mu.Unlock()
	var none R
	j.result = none
}

// start begins do, unless the same runs already. It takes the place of what runs, whose result is dropped. first is the result until there is one.
func (j *job[R]) start(ctx context.Context, o *Operator, first R, same func(R) bool, do func(context.Context) R) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.cancel != nil {
		if same(j.result) {
			return
		}
		j.cancel()
	}
	ctx, cancel := context.WithCancel(ctx)
	j.serial++
	serial := j.serial
	j.result, j.cancel = first, cancel
	o.work.Go(func() {
		defer cancel()
		j.end(serial, do(ctx))
		o.notify()
	})
}

// end keeps a result, unless another one was begun since.
func (j *job[R]) end(serial int, result R) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.serial == serial {
		j.result, j.cancel = result, nil
	}
}

// migrate begins an attempt, unless it runs already.
func (o *Operator) migrate(ctx context.Context, a core.Attempt) {
	same := func(m core.Migration) bool { return m.Attempt == a }
	first := core.Migration{Attempt: a}
	if last := o.migration.get(); same(last) {
		first.Failure = last.Failure
	}
	o.migration.start(ctx, o, first, same, func(ctx context.Context) core.Migration {
		err := migrator{o.dynamic.Resource(o.Migrations), o.Migrations}.rewrite(ctx, o.Encrypted, a.Key)
		if err != nil {
			o.Log.Warn("the migration failed and is begun again", "key", a.Key, "error", err.Error())
		}
		return core.Migration{Attempt: a, Done: err == nil, Failure: first.Failure.Next(err, o.Clock.Now())}
	})
}

// check begins a pre-flight check, unless one for the same configuration runs already.
func (o *Operator) check(ctx context.Context, p config.Plugin) {
	hash := config.Wanted{Type: config.KMS, KMS: p}.Hash()
	same := func(r core.Preflight) bool { return r.Hash == hash }
	o.preflight.start(ctx, o, core.Preflight{Hash: hash, Message: "it is under way"}, same, func(ctx context.Context) core.Preflight {
		ctx, cancel := context.WithTimeout(ctx, o.Check)
		defer cancel()
		result := preflightPod{o}.result(ctx, p, hash)
		result.At = o.Clock.Now()
		return result
	})
}
