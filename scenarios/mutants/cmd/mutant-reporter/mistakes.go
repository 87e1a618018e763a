package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/transport"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/internal/host"
	"github.com/kmsharness/kmsharness/reporter"
	"github.com/kmsharness/kmsharness/reporter/core"
	"github.com/kmsharness/kmsharness/reporter/options"
	"github.com/kmsharness/kmsharness/reporter/probe"
	"github.com/kmsharness/kmsharness/reporter/publish"
	"github.com/kmsharness/kmsharness/scenarios/mutants/mutation"
)

// errAtOnce is the last output of a reporter that ends by itself.
var errAtOnce = errors.New("open /var/run/kmsplugin: permission denied")

// endAtOnce is a reporter that does not come to its first round.
func endAtOnce(options.Options) (reporter.Change, error) { return nil, errAtOnce }

// withoutDeadline probes with the context of the process: the deadline is a flag that never reaches the RPC.
func withoutDeadline(o options.Options) (reporter.Change, error) {
	return func(l *reporter.Loop) { l.Prober = probe.New(host.Host{}, o.Plugins, 24*time.Hour) }, nil
}

// catchUp counts ticks from when the last one was due, and not from now.
func catchUp(options.Options) (reporter.Change, error) {
	return func(l *reporter.Loop) { l.Step = catchesUp() }, nil
}

// catchesUp keeps a schedule of its own, and nothing between two ticks.
func catchesUp() func(core.Config, core.State, core.Event) (core.State, core.Action) {
	var due time.Time
	return func(c core.Config, s core.State, ev core.Event) (core.State, core.Action) {
		if ev.Kind == core.Timer {
			s = core.State{}
			if due.IsZero() {
				due = ev.Now
			}
		}
		s, a := core.Step(c, s, ev)
		if a.Kind == core.Wait {
			due = due.Add(c.Timing.Interval)
			a.Until = due
		}
		return s, a
	}
}

// readKubeconfig returns the connection that the flags of a reporter name.
func readKubeconfig(o options.Options) (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", o.Kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig: %w", err)
	}
	return config, nil
}

// connecting is a reporter whose connection to the API server is changed.
func connecting(change func(*rest.Config)) func(options.Options) (reporter.Change, error) {
	return func(o options.Options) (reporter.Change, error) {
		config, err := readKubeconfig(o)
		if err != nil {
			return nil, err
		}
		change(config)
		publisher, err := publish.New(config, nil, o.Operator, o.Form, o.Node, time.Now)
		if err != nil {
			return nil, err
		}
		return func(l *reporter.Loop) { l.Publisher = publisher }, nil
	}
}

// readTokenByTheMinute leaves it to client-go when the file of the token is read again.
func readTokenByTheMinute(config *rest.Config) {
	config.Wrap(transport.TokenSourceWrapTransport(transport.NewCachedFileTokenSource(config.BearerTokenFile)))
	config.BearerToken, config.BearerTokenFile = "", ""
}

// errDialled is what a client says whose connection was made at the start, and is gone.
var errDialled = errors.New("use of closed network connection")

// dialServerOnce keeps the first connection to the API server and never makes another one.
func dialServerOnce(config *rest.Config) {
	var dialled atomic.Bool
	config.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		if dialled.Load() {
			return nil, errDialled
		}
		c, err := new(net.Dialer).DialContext(ctx, network, address)
		dialled.Store(err == nil)
		return c, err
	}
}

// dialPluginsOnce is a prober that never makes a second connection to a plugin whose first one broke.
func dialPluginsOnce(options.Options) (reporter.Change, error) {
	return func(l *reporter.Loop) {
		l.Prober = &once{good: l.Prober, broken: map[string]*core.Failure{}}
	}, nil
}

// once remembers how the connection to each plugin broke. All is not called by two at the same time.
type once struct {
	good   reporter.Prober
	broken map[string]*core.Failure
}

// All implements reporter.Prober.
func (p *once) All(ctx context.Context) []core.Result {
	results := p.good.All(ctx)
	for i, r := range results {
		if p.broken[r.KeyID] == nil && r.Failure != nil && r.Failure.Code == "Unavailable" {
			p.broken[r.KeyID] = &core.Failure{Code: "Unavailable", Text: contract.SafeDetail(errDialled.Error())}
		}
		if f := p.broken[r.KeyID]; f != nil {
			results[i].Answer, results[i].Failure = nil, f
		}
	}
	return results
}

// onlyChanges is a reporter that writes what is new.
func onlyChanges(options.Options) (reporter.Change, error) {
	return func(l *reporter.Loop) { l.Publisher = &mutation.OnlyNews{Publisher: l.Publisher} }, nil
}
