package mutants

import (
	"context"
	"errors"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kmsharness/kmsharness/aggregator/controller"
	"github.com/kmsharness/kmsharness/aggregator/reconcile"
	"github.com/kmsharness/kmsharness/harness/cluster/virtual"
	"github.com/kmsharness/kmsharness/reporter/core"
)

// refusedReporters are reporters that cannot live with a refusal.
func refusedReporters() []Mutant {
	return []Mutant{
		{
			Name: "gives-up-when-forbidden", Scenario: "reporter-refused", Caught: []string{"CADENCE"}, Virtual: publishing(givesUp),
			Mistake: "403 taken for final, as a program error that no retry can mend: when the role binding is back the reporter is silent until its pod is restarted",
		},
		{
			Name: "tries-until-it-is-taken", Scenario: "reporter-refused", Caught: []string{"CADENCE"}, Virtual: publishing(triesOn),
			Mistake: "a write that is tried again at once for as long as it has time: an API server that has too many requests gets ever more of them",
		},
	}
}

// refusedAggregators are aggregators that cannot live with a refusal, or believe a watch that is late.
func refusedAggregators() []Mutant {
	return []Mutant{
		{
			Name: "hammers", Scenario: "aggregator-refused", Caught: []string{"QUIET"}, Virtual: aggregatesBy(func(a *startingAggregator) { wrapRequests(&a.Host, hammering) }),
			Mistake: "a queue without a rate limiter, and a client that ignores Retry-After: whoever is refused asks again at once, hundreds of times a second",
		},
		{
			Name: "trusts-its-watches", Scenario: "watches-late", Caught: []string{"ROLLUP-TRUTH"}, Virtual: trustingWatches(),
			Mistake: "decisions from informers alone, as most controllers make them: when a watch is late, fresh reports are called stale, and those of a node that is there again are removed",
		},
	}
}

func givesUp(next apply) apply {
	over := false
	return func(ctx context.Context, write core.Action) error {
		if over {
			return nil
		}
		err := next(ctx, write)
		over = apierrors.IsForbidden(err)
		return err
	}
}

func triesOn(next apply) apply {
	return func(ctx context.Context, write core.Action) (err error) {
		for range mostTries {
			var refused apierrors.APIStatus
			if err = next(ctx, write); !errors.As(err, &refused) {
				return err
			}
		}
		return err
	}
}

// mostTries of one write: its deadline ends it as well.
const mostTries = 50

// hammering sends a request again at once for as long as it is refused, and does not wait as Retry-After asks.
func hammering(next http.RoundTripper) roundTrip {
	return func(r *http.Request) (*http.Response, error) {
		for n := 0; ; n++ {
			again := r.Clone(r.Context())
			var err error
			if r.GetBody != nil {
				if again.Body, err = r.GetBody(); err != nil {
					return nil, err
				}
			}
			answer, err := next.RoundTrip(again)
			if err != nil || answer.StatusCode < http.StatusBadRequest || n == mostTries {
				return answer, err
			}
			if err := answer.Body.Close(); err != nil {
				return nil, err
			}
		}
	}
}

// trustingWatches is an aggregator that reads nothing before it writes.
func trustingWatches() func() virtual.Options {
	return configuredAggregators(func(c *controller.Config) {
		c.Refresh = func(_ context.Context, c *controller.Controller) (reconcile.State, error) { return c.Latest(), nil }
	})
}
