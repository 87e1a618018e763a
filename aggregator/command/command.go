package command

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	"k8s.io/klog/v2"

	"github.com/kmsharness/kmsharness/aggregator/controller"
	"github.com/kmsharness/kmsharness/aggregator/core"
	"github.com/kmsharness/kmsharness/altsvc"
	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/internal/election"
	"github.com/kmsharness/kmsharness/internal/host"
	"github.com/kmsharness/kmsharness/internal/program"
	"github.com/kmsharness/kmsharness/reporter/publish"
)

// Exit codes of the program.
const (
	ExitOK     = 0
	ExitFailed = 1 // could not start or go on
	ExitUsage  = 2 // a mistake on the command line
)

// errUsage marks a mistake on the command line.
var errUsage = errors.New("usage")

// Configure changes what a controller is made with, after the flags were read.
type Configure func(*controller.Config)

// Main runs the program on a host until it ends or ctx does, and returns its exit code.
func Main(ctx context.Context, h host.Host, args []string, stderr io.Writer, configure ...Configure) int {
	cmd := New(h, stderr, configure...)
	cmd.SetArgs(args)
	err := cmd.ExecuteContext(ctx)
	switch {
	case err == nil:
		return ExitOK
	case errors.Is(err, errUsage):
		return ExitUsage
	default:
		fmt.Fprintf(stderr, "kms-health-aggregator: %v\n", err)
		return ExitFailed
	}
}

func New(h host.Host, stderr io.Writer, configure ...Configure) *cobra.Command {
	o := Defaults()
	usage := func(errs ...error) error {
		for _, err := range errs {
			fmt.Fprintf(stderr, "kms-health-aggregator: %v\n", err)
		}
		return errUsage
	}
	cmd := &cobra.Command{
		Use:   "kms-health-aggregator",
		Short: "Roll up the health reports of KMS v2 plugins into conditions of their operator",
		Example: `  kms-health-aggregator --operator kubeapiserver --leader-elect
  kms-health-aggregator --operator authentication --pod-selector app=oauth-apiserver --pod-namespace openshift-oauth-apiserver
  kms-health-aggregator --kubeconfig dev.kubeconfig --interval 1s --kms-active always`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usage(fmt.Errorf("unexpected argument %q: everything is a flag, see --help", args[0]))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if errs := o.Validate(); len(errs) > 0 {
				return usage(errs...)
			}
			return o.run(cmd.Context(), h, stderr, configure)
		},
	}
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usage(err) })
	o.AddFlags(cmd.Flags())
	program.Versioned(cmd)
	return cmd
}

// run works until ctx ends or something cannot go on.
func (o Options) run(ctx context.Context, h host.Host, stderr io.Writer, configure []Configure) error {
	log := o.logger(stderr)
	if h.Alone() {
		klog.SetSlogLogger(log) // client-go logs through klog
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	config, err := o.config(h, log, registry)
	if err != nil {
		return err
	}
	for _, f := range configure {
		f(&config)
	}
	c, err := controller.New(config)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return c.Run(ctx) })
	if o.MetricsAddress != "" {
		group.Go(func() error { return serveMetrics(ctx, h, o.MetricsAddress, registry, c.Synced) })
	}
	err = group.Wait()
	log.Info("stopped")
	return err
}

func (o Options) logger(w io.Writer) *slog.Logger {
	if o.LogFormat == logText {
		return slog.New(slog.NewTextHandler(w, nil))
	}
	return slog.New(slog.NewJSONHandler(w, nil))
}

func (o Options) config(h host.Host, log *slog.Logger, registry prometheus.Registerer) (controller.Config, error) {
	if err := controller.DetectDeadConnections(); err != nil {
		return controller.Config{}, err
	}
	rest, err := controller.Connection(o.Kubeconfig)
	if err != nil {
		return controller.Config{}, err
	}
	operator, err := core.OperatorByName(o.Operator)
	if err != nil {
		return controller.Config{}, err
	}
	inertia, err := contract.ParseInertia(o.Inertia)
	if err != nil {
		return controller.Config{}, err
	}
	streaming, err := o.Stream.load()
	if err != nil {
		return controller.Config{}, err
	}
	return controller.Config{
		Host: h, REST: rest, Failover: o.failover(h), Operator: operator, Interval: o.Interval, Log: log, Registry: registry,
		Expected:     controller.Expected{NodeSelector: o.NodeSelector, PodSelector: o.PodSelector, PodNamespace: o.PodNamespace, PodNodeLabel: o.PodNodeLabel},
		AlwaysActive: o.KMSActive == kmsAlways,
		Union:        contract.Union{Inertia: inertia, Leave: o.ClusterOperator == operatorLeave},
		Election:     o.election(),
		Decide:       o.decide(),
		Streaming:    streaming,
	}, nil
}

// failover is the options of an aggregator that fails over, or nil.
func (o Options) failover(h host.Host) *altsvc.Options {
	if o.Connectivity != connectAltSvc {
		return nil
	}
	a := controller.Failover(h, o.Alternatives)
	return &a
}

// decide is nil for the default.
func (o Options) decide() func(core.Input, core.Memory) core.Decision {
	if o.Profile == contract.AggregatorConvergence {
		return core.Converge
	}
	return nil
}

func (o Options) election() *election.Options {
	if !o.LeaderElect {
		return nil
	}
	lease := o.lease()
	return &lease
}

const (
	// readTimeout bounds a scraper that is slow to ask, so that it cannot pile up connections.
	readTimeout = 5 * time.Second
	// drainTimeout is left to scrapes in progress; well within the two seconds in which the process has to end.
	drainTimeout = 500 * time.Millisecond
)

// serveMetrics serves /metrics, /healthz (the process runs) and /readyz (its caches are filled) until ctx ends.
func serveMetrics(ctx context.Context, h host.Host, address string, registry *prometheus.Registry, synced func() bool) error {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if !synced() {
			http.Error(w, "caches are not filled yet", http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	})
	listener, err := h.Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("serve metrics on %s: %w", address, err)
	}
	server := &http.Server{Handler: mux, ReadTimeout: readTimeout}
	drained := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(drained)
		ctx, cancel := context.WithTimeout(context.Background(), drainTimeout)
		defer cancel()
		_ = server.Shutdown(ctx) // what is not done by then is cut off with the process
	})
	err = server.Serve(listener)
	if !stop() {
		<-drained
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("serve metrics on %s: %w", address, err)
}

// load is nil where no streams are served.
func (o StreamOptions) load() (*controller.Streaming, error) {
	if o.Address == "" {
		return nil, nil
	}
	if _, err := o.tls(); err != nil {
		return nil, err
	}
	// The files are read for each connection, so that a certificate or an authority that was renewed is used.
	config := &tls.Config{MinVersion: tls.VersionTLS13, GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return o.tls() }}
	return &controller.Streaming{Address: o.Address, TLS: config, Form: publish.Form(o.Contract)}, nil
}

// tls is the configuration of one connection. A client without a certificate of the authority gets none.
func (o StreamOptions) tls() (*tls.Config, error) {
	certificate, err := tls.LoadX509KeyPair(o.Certificate, o.Key)
	if err != nil {
		return nil, fmt.Errorf("--stream-certificate and --stream-key: %w", err)
	}
	text, err := os.ReadFile(o.ClientCA)
	if err != nil {
		return nil, fmt.Errorf("--stream-client-ca: %w", err)
	}
	authority := x509.NewCertPool()
	if !authority.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("--stream-client-ca %s: no PEM certificate in it", o.ClientCA)
	}
	return &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{certificate}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: authority,
		NextProtos: []string{"h2"}}, nil
}
