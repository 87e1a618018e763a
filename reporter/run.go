package reporter

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kmsharness/kmsharness/altsvc"
	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/internal/host"
	"github.com/kmsharness/kmsharness/reporter/core"
	"github.com/kmsharness/kmsharness/reporter/metrics"
	"github.com/kmsharness/kmsharness/reporter/options"
	"github.com/kmsharness/kmsharness/reporter/probe"
	"github.com/kmsharness/kmsharness/reporter/publish"
	"github.com/kmsharness/kmsharness/reporter/stream"
)

// Run is a whole reporter on a host, until ctx ends. It returns an error only for what no waiting would cure: a kubeconfig that
// cannot be read, an address that cannot be listened on.
func Run(ctx context.Context, h host.Host, o options.Options, log *slog.Logger, changes ...Change) error {
	now := h.Clock().Now
	config, err := Connection(h, o)
	if err != nil {
		return err
	}
	var publisher Publisher
	var streaming *stream.Publisher
	if o.Publish == options.Stream {
		streaming = stream.New(stream.Options{Host: h, Aggregators: o.Aggregators, TLS: clientTLS(config), KeyIDs: keyIDs(o.Plugins), Timing: o.Timing, Log: log, Now: now})
		publisher = streaming
	} else {
		applying, err := publish.New(config, failover(h, o), o.Operator, o.Form, o.Node, now)
		if err != nil {
			return err
		}
		defer applying.Close()
		publisher = applying
	}
	m := metrics.New(o.Node, keyIDs(o.Plugins))
	observer := NewObserver(log, m)
	group, ctx := errgroup.WithContext(ctx)
	if o.MetricsAddress != "" {
		listener, err := h.Listen(ctx, "tcp", o.MetricsAddress)
		if err != nil {
			return fmt.Errorf("listen for metrics: %w", err)
		}
		log.Info("serving metrics", "address", listener.Addr().String())
		group.Go(func() error {
			return serve(ctx, listener, handler(m, observer, o.Timing.Interval, now))
		})
	}
	loop := &Loop{
		Config:    core.Config{Node: o.Node, Timing: o.Timing},
		Prober:    probe.New(h, o.Plugins, o.Timing.ProbeTimeout),
		Publisher: publisher, Observer: observer, Clock: h.Clock(), Jitter: jitter(h.Random()),
	}
	for _, change := range changes {
		change(loop)
	}
	log.Info("reporting", "node", o.Node, "plugins", keyIDs(o.Plugins), "operator", string(o.Operator), "contract", string(o.Form),
		"publish", string(o.Publish), "connectivity", string(o.Connectivity), "interval", o.Timing.Interval.String(), "fieldManager", contract.FieldManager(o.Node))
	if streaming != nil {
		group.Go(func() error { streaming.Run(ctx); return nil })
	}
	group.Go(func() error {
		if streaming == nil || streaming.Ready(ctx) == nil {
			loop.Run(ctx)
		}
		return nil
	})
	return group.Wait()
}

// Change makes another reporter of one that is about to run. Those that are wrong on purpose are made with it; see
// scenarios/mutants.
type Change func(*Loop)

// Connection is how a reporter reaches the API server.
func Connection(h host.Host, o options.Options) (*rest.Config, error) {
	config, err := restConfig(h, o)
	if err != nil {
		return nil, err
	}
	config.Dial = h.DialFunc
	config.Wrap(h.Wrap)
	return config, nil
}

// restConfig finds the API server.
func restConfig(h host.Host, o options.Options) (*rest.Config, error) {
	if o.Kubeconfig == "" {
		config, err := inCluster(h)
		if err != nil {
			return nil, fmt.Errorf("connectivity %s: read the in-cluster configuration: %w", o.Connectivity, err)
		}
		return config, nil
	}
	config, err := clientcmd.BuildConfigFromFlags("", o.Kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("connectivity %s: read kubeconfig %s: %w", o.Connectivity, o.Kubeconfig, err)
	}
	return config, nil
}

// inCluster is rest.InClusterConfig, which knows the process's own environment and files alone.
func inCluster(h host.Host) (*rest.Config, error) {
	if h.Alone() {
		return rest.InClusterConfig()
	}
	name, port := h.Getenv("KUBERNETES_SERVICE_HOST"), h.Getenv("KUBERNETES_SERVICE_PORT")
	if name == "" || port == "" {
		return nil, rest.ErrNotInCluster
	}
	const account = "/var/run/secrets/kubernetes.io/serviceaccount/"
	token, err := os.ReadFile(h.File(account + "token"))
	if err != nil {
		return nil, err
	}
	return &rest.Config{Host: "https://" + net.JoinHostPort(name, port), TLSClientConfig: rest.TLSClientConfig{CAFile: h.File(account + "ca.crt")},
		BearerToken: string(token), BearerTokenFile: h.File(account + "token")}, nil
}

// clientTLS makes the TLS configuration for the aggregator: the certificate of the kubeconfig, read anew each time, and its authority.
func clientTLS(config *rest.Config) func() (*tls.Config, error) {
	return func() (*tls.Config, error) {
		c := rest.CopyConfig(config)
		c.TLSClientConfig.ServerName, c.TLSClientConfig.NextProtos = contract.AggregatorServerName, nil
		return rest.TLSConfigFor(c)
	}
}

// failover is the options of a reporter that fails over, or nil.
func failover(h host.Host, o options.Options) *altsvc.Options {
	if o.Connectivity != options.AltSvc {
		return nil
	}
	a := publish.Alternatives(h, o.Timing, o.Alternatives)
	return &a
}

func keyIDs(plugins []probe.Plugin) []string {
	ids := make([]string, len(plugins))
	for i, p := range plugins {
		ids[i] = p.KeyID
	}
	return ids
}

// jitter draws from [-limit, limit].
func jitter(random *rand.Rand) func(limit time.Duration) time.Duration {
	return func(limit time.Duration) time.Duration { return time.Duration(random.Int64N(int64(2*limit)+1)) - limit }
}
