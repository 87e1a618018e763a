package mutants

import (
	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/backend/sim"
	reporter "github.com/kmsharness/kmsharness/reporter/core"
)

// connecting is reporters that use connections to the API wrongly.
func connecting() []Mutant {
	return []Mutant{
		{
			Name: "connects-for-each-write", Scenario: "service-network-faults", Caught: []string{"steps[21].never"}, Subject: hook(sim.TestHooks{ConnectEachTime: true}),
			Mistake: "a client without connections that are kept: each write pays for a handshake, and needs all that a new connection needs",
		},
		{
			Name: "write-failure-is-the-plugins", Scenario: "service-load-balancer-outage", Caught: []string{"TRUTHFUL-PROBE"}, Subject: publishing(blamesPlugins),
			Mistake: "the last error of the reporter in its next report: when the load balancer is back, every plugin is reported with the failure of a write",
		},
	}
}

// blamesPlugins is a publisher that reports the failure of its last write in the place of what the plugins answered.
func blamesPlugins(_ string, next sim.Publish) sim.Publish {
	var failure error
	return func(a reporter.Action, done func(error)) {
		if failure != nil {
			entries := a.Report.Entries
			a.Report.Entries = nil
			for _, e := range entries {
				e.Status, e.KEKID, e.Detail = contract.StatusError, "", failure.Error()
				a.Report.Entries = append(a.Report.Entries, e)
			}
		}
		next(a, func(err error) {
			failure = err
			done(err)
		})
	}
}
