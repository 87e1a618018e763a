package plugin

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	kmsapi "k8s.io/kms/apis/v2"
)

func stops(ctx context.Context, p *Plugin, _ *kmsapi.StatusResponse) error {
	return stop(ctx, p, "SIGTERM")
}

// stop ends the plugin with SIGTERM and starts it again. It is a Finding if the plugin had to be killed.
func stop(ctx context.Context, p *Plugin, what string) error {
	began := time.Now()
	exit := need(p.Terminate(ctx))
	took := time.Since(began)
	p.Measure("ended after %v: %v", took.Round(time.Millisecond), exit)
	must(startAfter(ctx, p, what))
	if exit.Forced {
		return found(what, fmt.Sprintf("the process still ran after %v", took.Round(time.Second)), "its end within "+p.timing.Stop.String())
	}
	return sealsAgain(ctx, p)
}

func stopsWithIdleConnection(ctx context.Context, p *Plugin) error {
	w := need(dialWire(ctx, p))
	defer w.Close()
	must(othersServed(ctx, p, "while there is an idle one")) // the plugin has accepted it by now
	return stop(ctx, p, "SIGTERM with an idle connection")
}

func callAtStop(ctx context.Context, p *Plugin) error {
	var hung error
	must(endUnderLoad(ctx, p, (*ownProcess).end, func(err error) {
		if late(err) {
			hung = err
		}
	}))
	must(startAfter(ctx, p, "SIGTERM in mid-call"))
	if hung != nil {
		return found("Encrypt, in flight at SIGTERM", hung, "an answer or an error before the timeout")
	}
	return sealsAgain(ctx, p)
}

func killInMidCall(ctx context.Context, p *Plugin) error {
	must(endUnderLoad(ctx, p, (*ownProcess).Kill, func(error) {}))
	must(startAfter(ctx, p, "SIGKILL in mid-call"))
	if err := sealsAgain(ctx, p); err != nil {
		_ = restart(ctx, p, "SIGTERM", (*ownProcess).end) // perhaps it works for those who follow
		return err
	}
	return nil
}

// callsAtEnd is how many callers the plugin has when it ends.
const callsAtEnd = 4

// endUnderLoad runs end while callers call Encrypt, and passes the last error of each caller to ended.
func endUnderLoad(ctx context.Context, p *Plugin, end ending, ended func(error)) error {
	var calls, took atomic.Int64
	var over atomic.Bool
	var mu sync.Mutex
	trips := roundTrips(p, callsAtEnd)
	wait := meanwhile(callsAtEnd, func(caller int) {
		for !over.Load() && ctx.Err() == nil {
			calls.Add(1)
			began := time.Now()
			call, cancel := context.WithTimeout(ctx, p.timing.Call)
			// It does not wait for the next start: that would hide a call that hangs.
			_, err := trips[caller].encrypt(call, p.Client(), grpc.WaitForReady(false))
			cancel()
			took.Store(int64(time.Since(began)))
			if err != nil {
				mu.Lock()
				ended(err)
				mu.Unlock()
			}
		}
	})
	p.Poll(ctx, time.Millisecond, p.timing.Call, func(context.Context) bool { return calls.Load() > 2*callsAtEnd })
	over.Store(true) // each caller has at most one more call, which is half done after half of its time
	half := time.NewTimer(time.Duration(took.Load() / 2))
	defer half.Stop()
	select {
	case <-half.C:
	case <-ctx.Done():
	}
	err := end(p.ownProcess, ctx)
	wait()
	return err
}

// blackout is how long the plugin is down while a call waits for it.
const blackout = time.Second

func waitingCall(ctx context.Context, p *Plugin) error {
	must(p.end(ctx))
	trip := roundTrips(p, 1)[0]
	call, cancel := context.WithTimeout(ctx, blackout+p.timing.Start)
	defer cancel()
	waiting := make(chan error, 1)
	go func() {
		_, err := trip.encrypt(call, p.Client())
		waiting <- err
	}()
	p.Poll(ctx, blackout, blackout, func(context.Context) bool { return false })
	if err := startAfter(ctx, p, "SIGTERM and "+blackout.String()); err != nil {
		cancel()
		<-waiting
		return err
	}
	if err := <-waiting; err != nil {
		return found("Encrypt, called while the plugin was down", err, "a ciphertext when it has started")
	}
	return nil
}
