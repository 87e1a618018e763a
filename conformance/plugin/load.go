package plugin

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kmsharness/kmsharness/conformance"
)

func load() []Check {
	return []Check{
		statusPolled(), sequential(), noMixUp(), concurrent(few()), concurrent(many()), concurrent(most()), keyIDUnderLoad(), statusUnderLoad(), cancelledCalls(),
		expiredDeadline(), shortDeadlines(), slowReader(), churn(), openConnections(), closedConnections(), descriptors(), threads(), memory(),
	}
}

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

// crowd is a number of callers at the same time.
type crowd struct {
	callers int
	profile conformance.Profile
	source  string
	after   string
}

func (c crowd) id() string { return fmt.Sprintf("KMS2-LOAD-CONCURRENT-%d", c.callers) }

func few() crowd {
	return crowd{10, conformance.Extended, sourceConcurrent + " (with 100 callers)", noMix}
}

func many() crowd {
	return crowd{100, conformance.Extended, sourceConcurrent + " has 100 callers", few().id()}
}

func most() crowd {
	return crowd{200, conformance.Robustness, "kube-apiserver --max-mutating-requests-inflight, by default 200: each may read an object whose DEK is not cached", many().id()}
}

const sourceConcurrent = "k8s.io/apiserver/pkg/storage/value/encrypt/envelope/kmsv2/grpc_service_unix_test.go: TestGRPCServiceConcurrentAccess"

func concurrent(c crowd) Check {
	return Check{
		Check: conformance.Check{
			ID: c.id(), Profile: c.profile,
			Title:       fmt.Sprintf("%d callers at once", c.callers),
			Rule:        fmt.Sprintf("Encrypt and Decrypt succeed for %d callers at once. They may take as long as one after another.", c.callers),
			Source:      c.source,
			Consequence: "Reads of objects whose DEK is not cached fail while many are made: failed to decrypt DEK.",
		},
		After: []string{c.after},
		Run: func(ctx context.Context, p *Plugin) error {
			callers, err := capacity(ctx, p, c.callers, p.timing.Load/2)
			if err != nil {
				return err
			}
			trips := roundTrips(p, callers)
			ctx, cancel := context.WithTimeout(ctx, p.timing.Load)
			defer cancel()
			var mu sync.Mutex
			var first error
			var failed, unfinished int
			together(callers, func(caller int) {
				same, err := trips[caller].run(ctx, p.Client())
				if err == nil && !same {
					err = errors.New("decrypt: another plaintext")
				}
				mu.Lock()
				defer mu.Unlock()
				switch {
				case late(err):
					unfinished++
				case err != nil:
					if failed++; first == nil {
						first = err
					}
				}
			})
			p.Measure("%d callers, %d of them did not finish in %v", callers, unfinished, p.timing.Load)
			request := fmt.Sprintf("Encrypt and Decrypt by %d callers at once", callers)
			if failed > 0 {
				return found(request, fmt.Sprintf("%d failed, the first with: %s", failed, show(first)), "no error")
			}
			if unfinished == callers {
				return found(request, fmt.Sprintf("none had finished after %v", p.timing.Load), "answers, as for a single caller")
			}
			return nil
		},
	}
}
