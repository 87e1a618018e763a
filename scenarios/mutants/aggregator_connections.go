package mutants

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/kmsharness/kmsharness/aggregator/controller"
	"github.com/kmsharness/kmsharness/internal/host"
)

// connectingAggregators is aggregators that need the load balancer.
func connectingAggregators() []Mutant {
	return []Mutant{
		{
			Name: "aggregator-by-load-balancer-alone", Scenario: "static-load-balancer-away", Caught: []string{"ROLLUP-TRUTH", "steps[3].expect"},
			Mistake: "an aggregator without --alternatives: the reporters write past the load balancer, and while it is away nobody rolls up what they report",
			Virtual: aggregatesBy(func(a *startingAggregator) {
				a.args = slices.DeleteFunc(a.args, func(arg string) bool {
					return strings.HasPrefix(arg, "--connectivity=") || strings.HasPrefix(arg, alternativesFlag)
				})
			}),
		},
		{
			Name: "alternatives-after-minutes", Scenario: "static-load-balancer-away", Caught: []string{"ROLLUP-TRUTH", "steps[3].expect"},
			Mistake: "alternatives for emergencies: they are tried once the load balancer has been unreachable for two minutes",
			Virtual: aggregatesBy(func(a *startingAggregator) {
				for _, arg := range a.args {
					if list, ok := strings.CutPrefix(arg, alternativesFlag); ok {
						inEmergencies(&a.Host, strings.Split(list, ","), 2*time.Minute)
					}
				}
			}),
		},
		{
			Name: "unblocked-at-once", Scenario: "static-apiservers-half-dead", Caught: []string{"ROLLUP-TRUTH", "steps[3].expect"},
			Mistake: "no memory of what has failed: after a liveness probe without an answer the first API server of the list is dialled again, which is the one that lost etcd",
			Virtual: configuredAggregators(func(c *controller.Config) { c.Failover.Block = time.Millisecond }),
		},
	}
}

const alternativesFlag = "--alternatives="

// inEmergencies lets a program connect to alternatives once it has been unable to connect to anything else for a time.
func inEmergencies(h *host.Host, alternatives []string, patience time.Duration) {
	inner := *h
	var mu sync.Mutex
	var since time.Time // zero: the last connection to something else succeeded
	h.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		alternative := slices.Contains(alternatives, address)
		mu.Lock()
		emergency := !since.IsZero() && inner.Clock().Since(since) >= patience
		mu.Unlock()
		if alternative && !emergency {
			return nil, errors.New("the load balancer is not given up yet")
		}
		conn, err := inner.Dial(ctx, network, address)
		mu.Lock()
		defer mu.Unlock()
		switch {
		case alternative:
		case err == nil:
			since = time.Time{}
		case since.IsZero():
			since = inner.Clock().Now()
		}
		return conn, err
	}
}
