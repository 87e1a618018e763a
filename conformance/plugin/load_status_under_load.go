package plugin

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/kmsharness/kmsharness/conformance"
)

// encrypters and pollsUnderLoad are the callers of Encrypt, and how often Status is called meanwhile.
const (
	encrypters     = 20
	pollsUnderLoad = 20
)

func statusUnderLoad() Check {
	return Check{
		Check: conformance.Check{
			ID: "KMS2-LOAD-STATUS-WITH-ENCRYPT", Profile: conformance.Extended,
			Title:       "Status is answered under load",
			Rule:        "Status is answered within the timeout of a call while others call Encrypt, as many as the plugin can serve in a third of that time.",
			Source:      sourceDocs + ": timeout, by default 3 s, applies to each call; plugins must optimize Status, as it will be under constant load",
			Consequence: "kube-apiserver reports the provider as unhealthy just because it is in use.",
		},
		After: []string{inARow},
		Run: func(ctx context.Context, p *Plugin) error {
			callers, err := capacity(ctx, p, encrypters, p.timing.Call/3)
			if err != nil {
				return err
			}
			trips := roundTrips(p, callers)
			ctx, cancel := context.WithTimeout(ctx, p.timing.Load)
			defer cancel()
			var stop atomic.Bool
			var encrypts atomic.Int64
			done := make(chan struct{})
			go func() {
				defer close(done)
				together(callers, func(caller int) {
					for !stop.Load() && ctx.Err() == nil {
						if _, err := trips[caller].encrypt(ctx, p.Client()); err == nil {
							encrypts.Add(1)
						}
					}
				})
			}()
			p.Poll(ctx, time.Millisecond, p.timing.Call, func(context.Context) bool { return encrypts.Load() > 0 })
			var took []time.Duration
			for began := time.Now(); len(took) < pollsUnderLoad && time.Since(began) < p.timing.Load/4; {
				call := time.Now()
				if _, err = p.Status(ctx); err != nil {
					break
				}
				took = append(took, time.Since(call))
			}
			stop.Store(true)
			<-done
			measure(p, "Status", took)
			p.Measure("%d callers: %d calls of Encrypt meanwhile", callers, encrypts.Load())
			if err != nil {
				return found(fmt.Sprintf("Status while %d callers call Encrypt", callers), err, "a response within "+p.timing.Call.String())
			}
			return nil
		},
	}
}
