package plugin

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	kmsapi "k8s.io/kms/apis/v2"

	"github.com/kmsharness/kmsharness/conformance"
)

// polled is the id of the check without which the plugin bears no load at all.
const polled = "KMS2-LOAD-STATUS-POLLED"

// polls is how often the check calls Status.
const polls = 300

func statusPolled() Check {
	return Check{
		Check: conformance.Check{
			ID: polled, Profile: conformance.Extended,
			Title:       "Status can be polled",
			Rule:        "300 calls of Status in a row are answered, each within the timeout of a call.",
			Source:      sourceProto + ": \"this API is meant to be polled\"; " + sourceDocs + ": plugins must optimize Status, as it will be under constant load; timeout, by default 3 s",
			Consequence: "A poll fails, kube-apiserver reports the provider as unhealthy, and asks more often: every 10 s instead of every minute.",
		},
		After: []string{StatusAnswers},
		Run: func(ctx context.Context, p *Plugin) error {
			var took []time.Duration
			var timeouts int
			for began := time.Now(); len(took) < polls && time.Since(began) < p.timing.Load/3; {
				call := time.Now()
				_, err := p.Status(ctx)
				took = append(took, time.Since(call))
				if late(err) {
					timeouts++ // a single one may be due to the machine
				}
				if (err != nil && !late(err)) || timeouts > 1 {
					return found(fmt.Sprintf("Status, %d times in a row", len(took)), err, "a response within "+p.timing.Call.String())
				}
			}
			measure(p, "Status", took)
			return nil
		},
	}
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

// watchers and views are the callers of the check and the calls of each.
const (
	watchers = 20
	views    = 20
)

func keyIDUnderLoad() Check {
	return Check{
		Check: conformance.Check{
			ID: "KMS2-LOAD-KEY-ID-STEADY", Profile: conformance.Extended,
			Title:       "no old key_id under load",
			Rule:        "When several callers call Status at the same time, none sees a key_id again after it has seen another.",
			Source:      sourceKEP + ", Status API: the key_id must not flip-flop while it rotates; " + sourceConfig + ": rotateDEKOnKeyIDChange",
			Consequence: "kube-apiserver rotates its DEK at each change, and counts objects as stale that are not.",
		},
		After: []string{polled, "KMS2-STATUS-KEY-ID-CONSTANT"},
		Run: func(ctx context.Context, p *Plugin) error {
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
		},
	}
}

// returns reports whether the last id was left before.
func returns(ids []string) bool {
	last := len(ids) - 1
	if last < 2 || ids[last] == ids[last-1] {
		return false
	}
	for _, id := range ids[:last-1] {
		if id == ids[last] {
			return true
		}
	}
	return false
}
