package mutants

import (
	"strings"

	"github.com/kmsharness/kmsharness/harness/backend/sim"
	"github.com/kmsharness/kmsharness/reporter/core"
)

// refusedReporters are reporters that cannot live with a refusal.
func refusedReporters() []Mutant {
	return []Mutant{
		{
			Name: "gives-up-when-forbidden", Scenario: "reporter-refused", Caught: []string{"CADENCE"}, Subject: publishing(givesUp),
			Mistake: "403 taken for final, as a program error that no retry can mend: when the role binding is back the reporter is silent until its pod is restarted",
		},
		{
			Name: "tries-until-it-is-taken", Scenario: "reporter-refused", Caught: []string{"CADENCE"}, Subject: publishing(triesOn),
			Mistake: "a write that is tried again at once for as long as it has time: an API server that has too many requests gets ever more of them",
		},
	}
}

// refusedAggregators are aggregators that cannot live with a refusal, or believe a watch that is late.
func refusedAggregators() []Mutant {
	return []Mutant{
		{
			Name: "hammers", Scenario: "aggregator-refused", Caught: []string{"QUIET"}, Subject: hook(sim.TestHooks{Hammer: true}),
			Mistake: "a queue without a rate limiter, and a client that ignores Retry-After: whoever is refused asks again at once, hundreds of times a second",
		},
		{
			Name: "trusts-its-watches", Scenario: "watches-late", Caught: []string{"ROLLUP-TRUTH"}, Subject: hook(sim.TestHooks{TrustWatches: true}),
			Mistake: "decisions from informers alone, as most controllers make them: when a watch is late, fresh reports are called stale, and those of a node that is there again are removed",
		},
	}
}

func givesUp(_ string, next sim.Publish) sim.Publish {
	over := false
	return func(write core.Action, done func(error)) {
		if over {
			done(nil)
			return
		}
		next(write, func(err error) {
			over = err != nil && strings.HasPrefix(err.Error(), "403 ")
			done(err)
		})
	}
}

func triesOn(_ string, next sim.Publish) sim.Publish {
	return func(write core.Action, done func(error)) {
		left := mostTries
		var try func()
		try = func() {
			next(write, func(err error) {
				if left--; err == nil || left <= 0 || !strings.HasPrefix(err.Error(), "4") && !strings.HasPrefix(err.Error(), "5") {
					done(err)
					return
				}
				try()
			})
		}
		try()
	}
}

// mostTries of one write: its deadline ends it as well.
const mostTries = 50
