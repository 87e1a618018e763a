package mutants

import (
	"context"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/reporter"
	"github.com/kmsharness/kmsharness/reporter/core"
)

// connecting is reporters that use connections to the API wrongly.
func connecting() []Mutant {
	return []Mutant{
		{
			Name: "connects-for-each-write", Scenario: "service-network-faults", Caught: []string{"steps[21].never"}, Virtual: looping(connectEachTime),
			Mistake: "a client without connections that are kept: each write pays for a handshake, and needs all that a new connection needs",
		},
		{
			Name: "write-failure-is-the-plugins", Scenario: "service-load-balancer-outage", Caught: []string{"TRUTHFUL-PROBE"}, Virtual: publishing(blamesPlugins),
			Mistake: "the last error of the reporter in its next report: when the load balancer is back, every plugin is reported with the failure of a write",
		},
	}
}

// connectEachTime closes the connection after each write.
func connectEachTime(_ *startingReporter, l *reporter.Loop) {
	next := l.Publisher
	l.Publisher = apply(func(ctx context.Context, write core.Action) error {
		err := next.Apply(ctx, write)
		if p, ok := next.(interface{ Close() }); ok {
			p.Close()
		}
		return err
	})
}

// blamesPlugins is a publisher that reports the failure of its last write in the place of what the plugins answered.
func blamesPlugins(next apply) apply {
	var failure error
	return func(ctx context.Context, a core.Action) error {
		if failure != nil {
			entries := a.Report.Entries
			a.Report.Entries = nil
			for _, e := range entries {
				e.Status, e.KEKID, e.Detail = contract.StatusError, "", failure.Error()
				a.Report.Entries = append(a.Report.Entries, e)
			}
		}
		failure = next(ctx, a)
		return failure
	}
}
