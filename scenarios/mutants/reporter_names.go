package mutants

import (
	"strings"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/backend/sim"
	reporter "github.com/kmsharness/kmsharness/reporter/core"
)

// resolving is reporters that know the load balancer by a name, and do not cope with DNS.
func resolving() []Mutant {
	lookup := func(l func(good sim.Lookup) sim.Lookup) func() sim.Options { return hook(sim.TestHooks{Lookup: l}) }
	return []Mutant{
		{
			Name: "connects-for-each-write", Scenario: "service-dns-failure", Caught: []string{"steps[3].never"}, Subject: hook(sim.TestHooks{ConnectEachTime: true}),
			Mistake: "a client without connections that are kept: each write resolves the name anew, and a failure of DNS is one of the API",
		},
		{
			Name: "lookup-failure-is-the-plugins", Scenario: "service-dns-failure", Caught: []string{"TRUTHFUL-PROBE"}, Subject: publishing(blamesPlugins),
			Mistake: "the last error of the reporter in its next report: when DNS is back, every plugin is reported with the failure of a lookup",
		},
		{
			Name: "lookup-failure-is-final", Scenario: "service-dns-failure", Caught: []string{"CADENCE"}, Subject: lookup(remembersFailures),
			Mistake: "a resolver that remembers that there is no such host, until the process is started again",
		},
		{
			Name: "resolves-once", Scenario: "service-dns-stale", Caught: []string{"CADENCE"}, Subject: lookup(resolvesOnce),
			Mistake: "an address that is resolved at the start, as by a dialer of one's own or a cache without an end: the load balancer moves, and the reporter does not",
		},
		{
			Name: "localhost-needs-dns", Scenario: "loopback-dns-failure", Caught: []string{"CADENCE"}, Subject: hook(sim.TestHooks{IgnoreHosts: true}),
			Mistake: "an image without /etc/hosts, or a resolver that does not read it: a reporter that needs nothing but its node waits for DNS",
		},
		{
			Name: "alternatives-need-the-name", Scenario: "altsvc-dns-failure", Caught: []string{"CADENCE"}, Subject: hook(sim.TestHooks{Heard: func(string) string { return "" }}),
			Mistake: "alternatives that are not used: the load balancer moves, and its name leads to where it was",
		},
	}
}

// blamesPlugins is a publisher that reports the failure of its last lookup in the place of what the plugins answered.
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
			failure = nil
			if err != nil && strings.HasPrefix(err.Error(), "lookup") {
				failure = err
			}
			done(err)
		})
	}
}

func remembersFailures(good sim.Lookup) sim.Lookup {
	var failure error
	return func(done func(int, error)) {
		if failure != nil {
			done(0, failure)
			return
		}
		good(func(address int, err error) {
			failure = err
			done(address, err)
		})
	}
}

func resolvesOnce(good sim.Lookup) sim.Lookup {
	var known *int
	return func(done func(int, error)) {
		if known != nil {
			done(*known, nil)
			return
		}
		good(func(address int, err error) {
			if err == nil {
				known = &address
			}
			done(address, err)
		})
	}
}
