package mutants

import (
	"cmp"
	"context"
	"math"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/kmsharness/kmsharness/altsvc"
	"github.com/kmsharness/kmsharness/harness/cluster/virtual"
	"github.com/kmsharness/kmsharness/internal/host"
	"github.com/kmsharness/kmsharness/reporter"
	"github.com/kmsharness/kmsharness/reporter/options"
	"github.com/kmsharness/kmsharness/reporter/publish"
)

// failingOver is reporters with connectivity altsvc that do not find another API server, and API servers that send them to the wrong ones.
func failingOver() []Mutant {
	return []Mutant{
		{
			Name: "alternatives-ignored", Scenario: "altsvc-load-balancer-black-hole", Caught: []string{"CADENCE"},
			Virtual: reporting(func(r *startingReporter) error { r.Connectivity = options.Loopback; return nil }),
			Mistake: "a client without a round tripper for Alt-Svc, or API servers without the feature gate: each write needs the load balancer",
		},
		{
			Name: "by-the-load-balancer-while-it-answers", Scenario: "altsvc-local-path", Caught: []string{"steps[2].holds"},
			Virtual: reporting(func(r *startingReporter) error { r.Connectivity = options.Loopback; return nil }),
			Mistake: "alternatives for failures alone: while the load balancer answers, however late, each write goes node, load balancer, node",
		},
		{
			Name: "list-ignored", Scenario: "static-load-balancer-away", Caught: []string{"CADENCE"},
			Virtual: reporting(func(r *startingReporter) error { r.Options.Alternatives = nil; return nil }),
			Mistake: "a static list of API servers that is not passed on to the client: each write needs the load balancer",
		},
		{
			Name: "unready-are-advertised", Scenario: "altsvc-load-balancer-black-hole", Caught: []string{"CADENCE"},
			Virtual: advertising(func() func(string) string {
				return func(string) string {
					return `h2="10.255.0.1:6443", h2="10.255.0.2:6443", h2="10.255.0.3:6443", h2="10.255.0.4:6443"`
				}
			}),
			Mistake: "the addresses of all machines that ever had an API server, instead of those that are ready: a write spends its time on connections to nobody",
		},
		{
			Name: "blocked-for-ever", Scenario: "altsvc-load-balancer-removed", Caught: []string{"CADENCE"},
			Virtual: failingOverBy(func(o *altsvc.Options) { o.Block = math.MaxInt64 / 4 }),
			Mistake: "an error of the network taken for one of a certificate: once each API server was restarted, none is left",
		},
		{
			Name: "alternatives-expire-at-once", Scenario: "altsvc-load-balancer-removed", Caught: []string{"CADENCE"},
			Virtual: failingOverBy(func(o *altsvc.Options) { o.MaxAge = time.Nanosecond }),
			Mistake: "addresses that are kept for one connection: when that breaks, the client asks the load balancer, which is gone",
		},
		{
			Name: "alternatives-learnt-once", Scenario: "altsvc-members-replaced", Caught: []string{"CADENCE"},
			Virtual: advertising(onlyTheFirst),
			Mistake: "a list of API servers that is read at the start: the members change, and the client knows those that are gone until somebody restarts it",
		},
		{
			Name: "advertised-by-a-stale-list", Scenario: "altsvc-stale-list", Caught: []string{"CADENCE"},
			Virtual: advertising(onlyTheFirstMembers),
			Mistake: "API servers that advertise the ready members of the load balancer's list: when that is outdated, nobody hears of those that took the place of others",
		},
		{
			Name: "dials-for-the-whole-deadline", Scenario: "altsvc-backend-not-ready", Caught: []string{"CADENCE"},
			Virtual: failingOverBy(func(o *altsvc.Options) { o.DialTimeout = time.Hour }),
			Mistake: "no timeout of its own for a connection: the deadline of the write ends the attempt, nobody is blamed, and the next write tries the same API server",
		},
		{
			Name: "fails-over-after-five-seconds", Scenario: "altsvc-apiserver-killed", Caught: []string{"steps[3].expect"},
			Virtual: reporting(func(r *startingReporter) error { stayWithTheGone(&r.Host, 5*time.Second); return nil }),
			Mistake: "an API server is gone once it has been unreachable for five seconds, as with a lease or a health check: until then each write goes to it again",
		},
	}
}

// onlyTheFirstMembers leaves out of a field what the first one did not have.
func onlyTheFirstMembers() func(string) string {
	var first []altsvc.Alternative
	return func(field string) string {
		f, err := altsvc.Parse(field)
		if err != nil {
			return field // it was not read, as a client would not
		}
		if first == nil {
			first = f.Alternatives
		}
		f.Alternatives = slices.DeleteFunc(f.Alternatives, func(a altsvc.Alternative) bool {
			return !slices.ContainsFunc(first, func(o altsvc.Alternative) bool { return o.Host == a.Host && o.Port == a.Port })
		})
		return f.String()
	}
}

func onlyTheFirst() func(string) string {
	var first string
	return func(field string) string {
		first = cmp.Or(first, field)
		return first
	}
}

// failingOverBy is a reporter that fails over in another way.
func failingOverBy(change func(*altsvc.Options)) func() virtual.Options {
	return reporting(func(r *startingReporter) error {
		o := publish.Alternatives(r.Host, r.Timing, r.Options.Alternatives)
		change(&o)
		p, err := r.publisher(&o)
		if err != nil {
			return err
		}
		r.changes = append(r.changes, func(l *reporter.Loop) { l.Publisher = p })
		return nil
	})
}

// advertising is API servers that tell clients of others than they should. make is called for each run.
func advertising(make func() func(field string) string) func() virtual.Options {
	return func() virtual.Options { return virtual.Options{AltSvc: make()} }
}

// stayWithTheGone lets a program connect to the server that it could not connect to, and to no other one, for a time.
func stayWithTheGone(h *host.Host, patience time.Duration) {
	inner := *h
	var mu sync.Mutex
	var gone string
	var since time.Time
	h.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		if network == "unix" {
			return inner.Dial(ctx, network, address)
		}
		mu.Lock()
		if gone != "" && inner.Clock().Since(since) < patience {
			address = gone
		}
		mu.Unlock()
		conn, err := inner.Dial(ctx, network, address)
		mu.Lock()
		defer mu.Unlock()
		switch {
		case err == nil:
			gone = ""
		case gone == "":
			gone, since = address, inner.Clock().Now()
		}
		return conn, err
	}
}
