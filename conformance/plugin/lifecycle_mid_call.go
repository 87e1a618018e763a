package plugin

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	kmsapi "k8s.io/kms/apis/v2"

	"github.com/kmsharness/kmsharness/conformance"
)

func killInMidCall() Check {
	return Check{
		Check: conformance.Check{
			ID: "KMS2-LIFECYCLE-KILLED-IN-MID-CALL", Profile: conformance.Extended,
			Title:       "serves after a kill in mid-call",
			Rule:        "When SIGKILL ends the plugin in the middle of calls, it encrypts again after its next start.",
			Source:      sourceBlackout,
			Consequence: "A crash under load is not mended by a restart: kube-apiserver's provider stays unhealthy, and writes fail after 3 minutes.",
			Needs:       []conformance.Capability{Command},
		},
		After: []string{killRestart, inARow},
		Run: func(ctx context.Context, p *Plugin) error {
			if err := endUnderLoad(ctx, p, p.Kill, func(error) {}); err != nil {
				return err
			}
			if err := startAfter(ctx, p, "SIGKILL in mid-call"); err != nil {
				return err
			}
			if _, err := sealWhenReady(ctx, p); err != nil {
				_ = restart(ctx, p, "SIGTERM", terminate(p)) // perhaps it works for those who follow
				return err
			}
			return nil
		},
	}
}

// endUnderLoad runs end while callers call Encrypt, and passes the last error of each caller to ended.
func endUnderLoad(ctx context.Context, p *Plugin, end func(context.Context) error, ended func(error)) error {
	var calls, took atomic.Int64
	var ending atomic.Bool
	var mu sync.Mutex
	trips := roundTrips(p, callsAtEnd)
	done := make(chan struct{})
	go func() {
		defer close(done)
		together(callsAtEnd, func(caller int) {
			for !ending.Load() && ctx.Err() == nil {
				calls.Add(1)
				began := time.Now()
				call, cancel := context.WithTimeout(ctx, p.timing.Call)
				// It does not wait for the next start: that would hide a call that hangs.
				_, err := p.Client().Encrypt(call, &kmsapi.EncryptRequest{Plaintext: trips[caller].plaintext, Uid: trips[caller].uid()}, grpc.WaitForReady(false))
				cancel()
				took.Store(int64(time.Since(began)))
				if err != nil {
					mu.Lock()
					ended(err)
					mu.Unlock()
				}
			}
		})
	}()
	p.Poll(ctx, time.Millisecond, p.timing.Call, func(context.Context) bool { return calls.Load() > 2*callsAtEnd })
	ending.Store(true) // each caller has at most one more call, which is half done after half of its time
	half := time.NewTimer(time.Duration(took.Load() / 2))
	defer half.Stop()
	select {
	case <-half.C:
	case <-ctx.Done():
	}
	err := end(ctx)
	<-done
	return err
}

// blackout is how long the plugin is down while a call waits for it.
const blackout = time.Second

// waits is the id of the check without which a plugin that has started may refuse the next call.
const waits = "KMS2-LIFECYCLE-WAITING-CALL"

func waitingCall() Check {
	return Check{
		Check: conformance.Check{
			ID: waits, Profile: conformance.Extended,
			Title:       "a waiting call is served",
			Rule:        "A call of Encrypt that waits while the plugin is down succeeds when the plugin has started: it does not accept calls before it can serve them.",
			Source:      sourceBlackout + ", TestKMSPluginLateStart",
			Consequence: "Requests that would only have been slow fail at each restart of the plugin.",
			Needs:       []conformance.Capability{Command},
		},
		After: []string{stopRestart, inARow},
		Waits: true,
		Run: func(ctx context.Context, p *Plugin) error {
			if _, err := p.Terminate(ctx); err != nil {
				return err
			}
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
		},
	}
}
