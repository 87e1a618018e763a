package plugin

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/kmsharness/kmsharness/conformance"
)

const noMix = "KMS2-LOAD-NO-MIX-UP"

// mixers and mixedTrips are the callers of the check and the round trips of each.
const (
	mixers     = 20
	mixedTrips = 5
)

func noMixUp() Check {
	return Check{
		Check: conformance.Check{
			ID: noMix, Profile: conformance.Extended,
			Title:       "callers get their own plaintext",
			Rule:        "When several callers encrypt and decrypt at the same time, each gets its own plaintext back, or an error.",
			Source:      sourceProto + ": DecryptResponse.plaintext is the decrypted data of the request; " + sourceConcurrent,
			Consequence: "kube-apiserver decrypts objects with the wrong key and cannot read them, or encrypts with a key that it cannot get again: the data is lost.",
		},
		After: []string{inARow, DecryptAnyOrder},
		Run: func(ctx context.Context, p *Plugin) error {
			n, err := capacity(ctx, p, mixers*mixedTrips, p.timing.Load/4)
			if err != nil {
				return err
			}
			callers := min(n, mixers)
			trips := roundTrips(p, callers*mixedTrips)
			ctx, cancel := context.WithTimeout(ctx, p.timing.Load/2)
			defer cancel()
			var wrong, right atomic.Int64
			together(callers, func(caller int) {
				for _, trip := range trips[caller*mixedTrips : (caller+1)*mixedTrips] {
					same, err := trip.run(ctx, p.Client())
					switch {
					case err != nil: // other checks are about errors
					case same:
						right.Add(1)
					default:
						wrong.Add(1)
					}
				}
			})
			p.Measure("%d callers: %d round trips", callers, right.Load())
			if wrong.Load() > 0 {
				return found(fmt.Sprintf("Encrypt and Decrypt by %d callers at once", callers), fmt.Sprintf("%d of %d calls of Decrypt returned another plaintext", wrong.Load(), wrong.Load()+right.Load()), "the plaintext that was encrypted, each time")
			}
			return nil
		},
	}
}
