package plugin

import (
	"context"
	"fmt"
	"time"

	"github.com/kmsharness/kmsharness/conformance"
)

// inARow is the id of the check on which those with several callers depend.
const inARow = "KMS2-LOAD-SEQUENTIAL"

// tripsInARow is how many round trips the check makes.
const tripsInARow = 200

func sequential() Check {
	return Check{
		Check: conformance.Check{
			ID: inARow, Profile: conformance.Extended,
			Title:       "200 round trips in a row",
			Rule:        "One caller can call Encrypt and Decrypt 200 times in a row, each within the timeout of a call.",
			Source:      sourceDocs + ": timeout, by default 3 s; " + sourceKEP + ", Motivation, Performance: after a restart kube-apiserver lists with one Decrypt after another",
			Consequence: "A list after the start of kube-apiserver fails: failed to decrypt DEK.",
		},
		After: []string{polled, RoundTrip},
		Run: func(ctx context.Context, p *Plugin) error {
			var encrypts, decrypts []time.Duration
			var timeouts int
			for began := time.Now(); len(decrypts) < tripsInARow && time.Since(began) < p.timing.Load/3; {
				var back []byte
				plaintext := p.Bytes(SeedBytes)
				call := time.Now()
				sealed, err := p.Encrypt(ctx, plaintext)
				encrypts = append(encrypts, time.Since(call))
				if err == nil {
					call = time.Now()
					back, err = p.Decrypt(ctx, sealed)
					decrypts = append(decrypts, time.Since(call))
				}
				request := fmt.Sprintf("Encrypt and Decrypt, %d times in a row", len(encrypts))
				if late(err) {
					if timeouts++; timeouts == 1 {
						continue // a single one may be due to the machine
					}
				}
				if err != nil {
					return found(request, err, "a response within "+p.timing.Call.String())
				}
				if string(back) != string(plaintext) {
					return found(request, "another plaintext", "the plaintext that was encrypted")
				}
			}
			measure(p, "Encrypt", encrypts)
			measure(p, "Decrypt", decrypts)
			return nil
		},
	}
}
