package plugin

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/kmsharness/kmsharness/conformance"
)

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
