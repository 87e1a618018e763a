package plugin

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/net/http2/hpack"

	"github.com/kmsharness/kmsharness/conformance"
)

// endedCalls is how many calls the client ends early.
const endedCalls = 20

func cancelledCalls() Check {
	return Check{
		Check: conformance.Check{
			ID: "KMS2-LOAD-CANCELLED-CALLS", Profile: conformance.Extended,
			Title:       "cancelled calls harm nobody",
			Rule:        "Calls that their caller cancels do not make other calls fail.",
			Source:      sourceClient + ": Encrypt and Decrypt end with the context of their request, which ends when the client of kube-apiserver goes away",
			Consequence: "A user who interrupts kubectl makes the requests of others fail.",
		},
		After: []string{few().id()},
		Run: endEarly("cancelled", func(ctx context.Context, i int) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(ctx)
			timer := time.AfterFunc(time.Duration(i%10)*time.Millisecond, cancel)
			return ctx, func() { timer.Stop(); cancel() }
		}),
	}
}

func shortDeadlines() Check {
	return Check{
		Check: conformance.Check{
			ID: "KMS2-LOAD-SHORT-DEADLINES", Profile: conformance.Extended,
			Title:       "calls with short deadlines harm nobody",
			Rule:        "Calls with deadlines of 1 ms to 10 ms do not make other calls fail.",
			Source:      sourceDocs + ": timeout may be any positive time; " + sourceClient + ": the deadline is that of the request if it is earlier",
			Consequence: "A request with a short timeout makes the requests of others fail.",
		},
		After: []string{expired, few().id()},
		Run: endEarly("with a deadline of 1 ms to 10 ms", func(ctx context.Context, i int) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, time.Duration(1+i%10)*time.Millisecond)
		}),
	}
}

// endEarly makes calls of Encrypt that bound ends early, and as many round trips at the same time and one afterwards, which must succeed.
func endEarly(what string, bound func(ctx context.Context, i int) (context.Context, context.CancelFunc)) func(context.Context, *Plugin) error {
	return func(ctx context.Context, p *Plugin) error {
		n, err := capacity(ctx, p, endedCalls, p.timing.Call/4)
		if err != nil {
			return err
		}
		trips := roundTrips(p, 2*n)
		var mu sync.Mutex
		var failed error
		together(2*n, func(caller int) {
			if caller < n {
				ctx, cancel := bound(ctx, caller)
				defer cancel()
				_, _ = trips[caller].encrypt(ctx, p.Client())
				return
			}
			ctx, cancel := context.WithTimeout(ctx, p.timing.Load)
			defer cancel()
			same, err := trips[caller].run(ctx, p.Client())
			if err == nil && !same {
				err = errors.New("another plaintext")
			}
			if err != nil {
				mu.Lock()
				defer mu.Unlock()
				failed = err
			}
		})
		if failed != nil {
			return found(fmt.Sprintf("Encrypt and Decrypt, during %d calls %s", n, what), failed, "the plaintext that was encrypted")
		}
		sealed, err := p.Seal(ctx)
		if err != nil {
			return found(fmt.Sprintf("Encrypt after %d calls %s", n, what), err, "a ciphertext")
		}
		return p.Unseal(ctx, sealed, fmt.Sprintf("Decrypt after %d calls %s", n, what))
	}
}

// expired is the id of the check on which that of short deadlines depends.
const expired = "KMS2-LOAD-EXPIRED-DEADLINE"

func expiredDeadline() Check {
	return Check{
		Check: conformance.Check{
			ID: expired, Profile: conformance.Robustness,
			Title:       "an expired deadline harms nobody",
			Rule:        "A call whose deadline has passed when it arrives does not make other calls fail.",
			Source:      "gRPC, doc/PROTOCOL-HTTP2.md: Timeout is any positive time, here 1 ns",
			Consequence: "A call that kube-apiserver sends too late ends the plugin for everybody.",
		},
		After: []string{SecondConnection, inARow},
		Run: func(ctx context.Context, p *Plugin) error {
			f, err := dialFrames(ctx, p)
			if err != nil {
				return err
			}
			defer f.end()
			for range endedCalls {
				if _, err := f.status(hpack.HeaderField{Name: "grpc-timeout", Value: "1n"}); err != nil {
					return found("Status with a timeout of 1 ns", err, "the connection stays open")
				}
			}
			id, err := f.status()
			if err == nil {
				err = f.await(ended(id))
			}
			if err != nil {
				return found(fmt.Sprintf("Status on a connection with %d calls whose deadline had passed", endedCalls), err, "an answer")
			}
			return othersServed(ctx, p, "after calls whose deadline had passed")
		},
	}
}
