package plugin

import (
	"context"
	"fmt"
	"slices"
	"time"

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
