package mutants

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"

	"k8s.io/client-go/rest"

	"github.com/kmsharness/kmsharness/altsvc"
	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/reporter"
	"github.com/kmsharness/kmsharness/reporter/core"
	"github.com/kmsharness/kmsharness/reporter/publish"
)

// choosing is reporters that find an alternative, and another than they should.
func choosing() []Mutant {
	return []Mutant{
		{
			Name: "own-host-unknown", Scenario: "altsvc-own-host", Caught: []string{"steps[0].expect"},
			Virtual: failingOverBy(func(o *altsvc.Options) { o.LocalAddresses = func() ([]netip.Addr, error) { return nil, nil } }),
			Mistake: "the first of the list, in place of the one on the own machine: each write crosses the network, and stops with another node",
		},
		{
			Name: "named-as-the-origin", Scenario: "altsvc-own-host", Caught: []string{"steps[0].expect"},
			Virtual: failingOverBy(func(o *altsvc.Options) { o.OriginAuthority = true }),
			Mistake: "alternatives addressed by the name of the load balancer, as RFC 7838 has it: no certificate of an API server has that, and all are blocked for ever",
		},
		{
			Name: "returns-to-the-better-one", Contract: scenario.ContractConditions, Scenario: "altsvc-own-host", Caught: []string{"steps[7].holds"}, Virtual: looping(madeAnew),
			Mistake: "the best alternative chosen for each request, in place of the one in use: clients flap with an API server that comes and goes",
		},
		{
			Name: "alternative-over-http1", Scenario: "altsvc-own-host", Caught: []string{"steps[7].holds"}, Virtual: looping(overHTTP1),
			Mistake: "the protocol of an alternative left out of account: one that speaks HTTP/1.1 alone is used all the same",
		},
		{
			Name: "certificate-error-forgotten", Scenario: "altsvc-certificate-error", Caught: []string{"steps[6].holds"}, Virtual: looping(madeAnew),
			Mistake: "alternatives that a client forgets with its connections: one that has shown a wrong certificate is trusted with the next one",
		},
		{
			Name: "alternatives-of-its-own", Scenario: "altsvc-gate-off", Caught: []string{"steps[4].expect"},
			Virtual: failingOverBy(func(o *altsvc.Options) {
				for n := range byte(3) {
					o.Static = append(o.Static, fmt.Sprintf("10.0.0.%d:%d", n+1, securePort))
				}
			}),
			Mistake: "API servers read from their EndpointSlices, in place of the header: the feature gate of the API servers switches nothing off",
		},
		{
			Name: "advertised-with-the-gate-off", Scenario: "altsvc-gate-off", Caught: []string{"steps[4].expect"}, Virtual: advertising(theLast),
			Mistake: "a feature gate that is read once and not again: API servers go on to advertise each other",
		},
	}
}

// theLast is the last field that there was, also where there should be none.
func theLast() func(string) string {
	last := ""
	return func(field string) string {
		last = cmp.Or(field, last)
		return last
	}
}

// securePort is that of API servers.
const securePort = 6443

// madeAnew makes the client anew after each write.
func madeAnew(r *startingReporter, l *reporter.Loop) {
	l.Publisher = apply(func(ctx context.Context, write core.Action) error {
		o := publish.Alternatives(r.Host, r.Timing, r.Options.Alternatives)
		config, err := reporter.Connection(r.Host, r.Options)
		if err != nil {
			return err
		}
		return r.applyBy(ctx, config, &o, write)
	})
}

// applyBy writes by a client that is made for this write.
func (r *startingReporter) applyBy(ctx context.Context, config *rest.Config, o *altsvc.Options, write core.Action) error {
	p, err := publish.New(config, o, r.Operator, r.Form, r.Node, r.Clock().Now)
	if err != nil {
		return err
	}
	defer p.Close()
	return p.Apply(ctx, write)
}

// overHTTP1 writes through the API server of its own machine by HTTP/1.1, and as it should where there is none.
func overHTTP1(r *startingReporter, l *reporter.Loop) {
	next := l.Publisher
	l.Publisher = apply(func(ctx context.Context, write core.Action) error {
		config, err := reporter.Connection(r.Host, r.Options)
		if err != nil {
			return err
		}
		own, err := r.AddressesFunc()
		if err != nil || len(own) == 0 {
			return next.Apply(ctx, write)
		}
		config.Host, config.ServerName = fmt.Sprintf("https://%s:%d", own[0], securePort), altsvc.DefaultAuthority
		if r.applyBy(ctx, config, nil, write) == nil {
			return nil
		}
		return next.Apply(ctx, write)
	})
}
