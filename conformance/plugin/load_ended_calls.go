package plugin

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/net/http2/hpack"
)

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
func endEarly(what string, bound func(ctx context.Context, i int) (context.Context, context.CancelFunc)) func(context.Context, *Plugin) error {
	return func(ctx context.Context, p *Plugin) error {
		n, err := capacity(ctx, p, endedCalls, p.timing.Call/4)
		if err != nil {
			return err
		}
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

// expired is the id of the check on which that of short deadlines depends.
const expired = "KMS2-LOAD-EXPIRED-DEADLINE"

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
