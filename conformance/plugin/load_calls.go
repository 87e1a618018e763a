package plugin

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/http2/hpack"
	kmsapi "k8s.io/kms/apis/v2"
)

// polls is how often the check calls Status.
const polls = 300

func statusPolled(ctx context.Context, p *Plugin) error {
	var took []time.Duration
	must(inTurn(p, polls, "Status", func() error {
		began := time.Now()
		_, err := p.Status(ctx)
		took = append(took, time.Since(began))
		return err
	}))
	measure(p, "Status", took)
	return nil
}

// measure adds the distribution of latencies to the result.
func measure(p *Plugin, what string, took []time.Duration) {
	if len(took) == 0 {
		return
	}
	slices.Sort(took)
	p.Measure("%s: %d calls, p50 %v, p99 %v, max %v", what, len(took), took[len(took)/2], took[len(took)*99/100], took[len(took)-1])
}

// encrypters and pollsUnderLoad are the callers of Encrypt, and how often Status is called meanwhile.
const (
	encrypters     = 20
	pollsUnderLoad = 20
)

func statusUnderLoad(ctx context.Context, p *Plugin) error {
	callers := need(capacity(ctx, p, encrypters, p.timing.Call/3))
	trips := roundTrips(p, callers)
	ctx, cancel := context.WithTimeout(ctx, p.timing.Load)
	defer cancel()
	var stop atomic.Bool
	var encrypts atomic.Int64
	wait := meanwhile(callers, func(caller int) {
		for !stop.Load() && ctx.Err() == nil {
			if _, err := trips[caller].encrypt(ctx, p.Client()); err == nil {
				encrypts.Add(1)
			}
		}
	})
	p.Poll(ctx, time.Millisecond, p.timing.Call, func(context.Context) bool { return encrypts.Load() > 0 })
	var took []time.Duration
	var err error
	for began := time.Now(); len(took) < pollsUnderLoad && time.Since(began) < p.timing.Load/4; {
		call := time.Now()
		if _, err = p.Status(ctx); err != nil {
			break
		}
		took = append(took, time.Since(call))
	}
	stop.Store(true)
	wait()
	measure(p, "Status", took)
	p.Measure("%d callers: %d calls of Encrypt meanwhile", callers, encrypts.Load())
	if err != nil {
		return found(fmt.Sprintf("Status while %d callers call Encrypt", callers), err, "a response within "+p.timing.Call.String())
	}
	return nil
}

// watchers and views are the callers of the check and the calls of each.
const (
	watchers = 20
	views    = 20
)

func keyIDUnderLoad(ctx context.Context, p *Plugin) error {
	ctx, cancel := context.WithTimeout(ctx, p.timing.Load/4)
	defer cancel()
	var mu sync.Mutex
	var seen string
	together(watchers, func(int) {
		var ids []string
		for range views {
			resp, err := p.Client().Status(ctx, &kmsapi.StatusRequest{})
			if err != nil {
				return // other checks are about errors
			}
			if ids = append(ids, resp.KeyId); returns(ids) {
				mu.Lock()
				defer mu.Unlock()
				seen = fmt.Sprintf("key_id %s, then %s, then %s again", quote(ids[len(ids)-1]), quote(ids[len(ids)-2]), quote(ids[len(ids)-1]))
				return
			}
		}
	})
	if seen != "" {
		return found(fmt.Sprintf("Status by %d callers at once", watchers), seen, "each key_id in one period only")
	}
	return nil
}

// returns reports whether the last id was left before.
func returns(ids []string) bool {
	last := len(ids) - 1
	return last > 1 && ids[last] != ids[last-1] && slices.Contains(ids[:last-1], ids[last])
}

// endedCalls is how many calls the client ends early.
const endedCalls = 20

func cancelled(ctx context.Context, i int) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	timer := time.AfterFunc(time.Duration(i%10)*time.Millisecond, cancel)
	return ctx, func() { timer.Stop(); cancel() }
}

func withShortDeadline(ctx context.Context, i int) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, time.Duration(1+i%10)*time.Millisecond)
}

// endEarly makes calls of Encrypt that bound ends early, and as many round trips at the same time and one afterwards, which must succeed.
func endEarly(what string, bound func(ctx context.Context, i int) (context.Context, context.CancelFunc)) JudgeFunc {
	return func(ctx context.Context, p *Plugin) error {
		n := need(capacity(ctx, p, endedCalls, p.timing.Call/4))
		trips := roundTrips(p, 2*n)
		timed, cancel := context.WithTimeout(ctx, p.timing.Load)
		defer cancel()
		var all tally
		together(2*n, func(caller int) {
			if caller < n {
				ctx, cancel := bound(ctx, caller)
				defer cancel()
				_, _ = trips[caller].encrypt(ctx, p.Client())
				return
			}
			all.add(timed, p, trips[caller])
		})
		if err := all.err(); err != nil {
			return found(fmt.Sprintf("Encrypt and Decrypt, during %d calls %s", n, what), err, "the plaintext that was encrypted")
		}
		return p.roundTrip(ctx, fmt.Sprintf("Decrypt after %d calls %s", n, what))
	}
}

func expiredDeadline(ctx context.Context, p *Plugin, f *frames) error {
	for range endedCalls {
		if _, err := f.status(hpack.HeaderField{Name: "grpc-timeout", Value: "1n"}); err != nil {
			return found("Status with a timeout of 1 ns", err, "the connection stays open")
		}
	}
	if err := f.call(); err != nil {
		return found(fmt.Sprintf("Status on a connection with %d calls whose deadline had passed", endedCalls), err, "an answer")
	}
	return othersServed(ctx, p, "after calls whose deadline had passed")
}

// Numbers of the check with log-ins.
const (
	logInCalls = 200 // of each kind
	fewLogIns  = 3   // of a session that is renewed meanwhile
	logInShare = 4   // one log-in for so many calls grows with the calls
)

// logInsDoNotGrow makes calls of one kind after another, and asks after each how many log-ins the KMS has seen.
func logInsDoNotGrow(ctx context.Context, p *Plugin) error {
	must(p.roundTrip(ctx, "Decrypt")) // a first log-in may wait for a first call
	for _, kind := range []struct {
		what string
		call func() error
	}{
		{"Status", func() error { _, err := p.Status(ctx); return err }},
		{"Encrypt and Decrypt", func() error { return p.roundTrip(ctx, "Decrypt") }},
	} {
		before := need(p.LogIns(ctx))
		n := need(repeat(p, logInCalls, p.timing.Load/3, func(int) error {
			_ = kind.call() // other checks are about errors
			return ctx.Err()
		}))
		after := need(p.LogIns(ctx))
		p.Measure("%d log-ins in %d calls of %s", after-before, n, kind.what)
		if after-before > max(fewLogIns, n/logInShare) {
			return found(fmt.Sprintf("%d calls of %s", n, kind.what), fmt.Sprintf("the KMS saw %d log-ins", after-before), fmt.Sprintf("a session that is used again: at most %d", max(fewLogIns, n/logInShare)))
		}
	}
	return nil
}
