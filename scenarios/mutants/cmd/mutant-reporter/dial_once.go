package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/reporter"
	"github.com/kmsharness/kmsharness/reporter/core"
	"github.com/kmsharness/kmsharness/reporter/options"
	"github.com/kmsharness/kmsharness/reporter/publish"
)

// errDialled is what a client says whose connection was made at the start, and is gone.
var errDialled = errors.New("use of closed network connection")

// dialServerOnce keeps the first connection to the API server and never makes another one.
func dialServerOnce(o options.Options) (reporter.Change, error) {
	config, err := clientcmd.BuildConfigFromFlags("", o.Kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig: %w", err)
	}
	var dialled atomic.Bool
	config.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		if dialled.Load() {
			return nil, errDialled
		}
		c, err := new(net.Dialer).DialContext(ctx, network, address)
		dialled.Store(err == nil)
		return c, err
	}
	publisher, err := publish.New(config, nil, o.Operator, o.Form, o.Node, time.Now)
	if err != nil {
		return nil, err
	}
	return func(l *reporter.Loop) { l.Publisher = publisher }, nil
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
