package stream

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"

	"github.com/kmsharness/kmsharness/contract"
	healthv1 "github.com/kmsharness/kmsharness/contract/proto/kmsharness/health/v1"
	"github.com/kmsharness/kmsharness/harness/controlplane/certtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// aggregator is a server that accepts each stream, and ends it on demand.
type aggregator struct {
	healthv1.UnimplementedHealthServiceServer
	stats.Handler
	address string
	tls     *tls.Config // of its clients
	end     chan struct{}
	mu      sync.Mutex
	open    int      // connections
	begun   int      // connections, so far
	streams chan int // connections that are open when a stream begins
}

func newAggregator(t *testing.T) *aggregator {
	t.Helper()
	authority := certtest.New(t)
	certificate := authority.Server(contract.AggregatorServerName)
	a := &aggregator{end: make(chan struct{}), streams: make(chan int, 16), tls: &tls.Config{MinVersion: tls.VersionTLS13, RootCAs: authority.Pool(), ServerName: contract.AggregatorServerName}}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	a.address = listener.Addr().String()
	server := grpc.NewServer(grpc.Creds(credentials.NewTLS(&tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{*certificate}})), grpc.StatsHandler(a))
	healthv1.RegisterHealthServiceServer(server, a)
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return a
}

func (a *aggregator) Report(s grpc.BidiStreamingServer[healthv1.ReportRequest, healthv1.ReportResponse]) error {
	a.mu.Lock()
	a.streams <- a.open
	a.mu.Unlock()
	if err := s.Send(&healthv1.ReportResponse{Content: &healthv1.ReportResponse_Configuration{Configuration: &healthv1.Configuration{}}}); err != nil {
		return err
	}
	select {
	case <-a.end:
		return status.Error(codes.FailedPrecondition, "ended by the test")
	case <-s.Context().Done():
		return s.Context().Err()
	}
}

func (a *aggregator) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (a *aggregator) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context   { return ctx }
func (a *aggregator) HandleRPC(context.Context, stats.RPCStats)                         {}

func (a *aggregator) HandleConn(_ context.Context, s stats.ConnStats) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch s.(type) {
	case *stats.ConnBegin:
		a.open++
		a.begun++
	case *stats.ConnEnd:
		a.open--
	}
}

func (a *aggregator) options(t *testing.T) Options {
	return Options{Aggregators: []string{a.address}, TLS: func() (*tls.Config, error) { return a.tls, nil }, KeyIDs: []string{"1"}, Timing: contract.DefaultTiming(),
		Log: slog.New(slog.NewTextHandler(t.Output(), nil)), Now: time.Now}
}

// run runs a publisher until the test ends.
func run(t *testing.T, o Options) *Publisher {
	t.Helper()
	p := New(o)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { p.Run(ctx) })
	t.Cleanup(func() { cancel(); running.Wait() })
	return p
}

// S1-10: each stream has a connection of its own, which ends with it.
func TestConnectionOfItsOwn(t *testing.T) {
	a := newAggregator(t)
	run(t, a.options(t))
	for n := range 6 {
		// The server may not have seen yet that the connection before has ended.
		if open := <-a.streams; open > 2 {
			t.Errorf("stream %d: %d connections", n, open)
		}
		a.end <- struct{}{}
	}
}

// Each stream brings another connection; one of those who share one does not.
func TestConnectionsAreCounted(t *testing.T) {
	for subject, c := range map[string]struct {
		run  func(*testing.T, *aggregator)
		want int
	}{
		"the publisher":                  {func(t *testing.T, a *aggregator) { run(t, a.options(t)) }, 3},
		"one-connection-for-all-streams": {sharing, 1},
	} {
		a := newAggregator(t)
		c.run(t, a)
		for n := range 3 {
			if <-a.streams; n < 2 {
				a.end <- struct{}{}
			}
		}
		a.mu.Lock()
		if a.begun != c.want {
			t.Errorf("%s: %d connections for three streams, want %d", subject, a.begun, c.want)
		}
		a.mu.Unlock()
	}
}

// sharing opens one stream after another over one connection, as a client does that is made once.
func sharing(t *testing.T, a *aggregator) {
	conn, err := grpc.NewClient("passthrough:///"+a.address, grpc.WithTransportCredentials(credentials.NewTLS(a.tls)))
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			s, err := healthv1.NewHealthServiceClient(conn).Report(context.Background())
			for err == nil {
				_, err = s.Recv()
			}
			if status.Code(err) != codes.FailedPrecondition {
				return // the test is over
			}
		}
	})
	t.Cleanup(func() { conn.Close(); running.Wait() })
}

// A publisher that finds nobody says why, at the deadline of the report at the latest, and ends at once.
func TestNobodyThere(t *testing.T) {
	a := newAggregator(t)
	for name, c := range map[string]func(o *Options){
		"nobody listens": func(o *Options) { o.Aggregators = []string{"127.0.0.1:1"} },
		"no aggregator":  func(o *Options) { o.Aggregators = nil },
		"no port":        func(o *Options) { o.Aggregators = []string{"localhost"} },
		"no credentials": func(o *Options) { o.TLS = func() (*tls.Config, error) { return nil, errors.New("no file") } },
		"another authority": func(o *Options) {
			o.TLS = func() (*tls.Config, error) {
				return &tls.Config{MinVersion: tls.VersionTLS13, RootCAs: certtest.New(t).Pool(), ServerName: contract.AggregatorServerName}, nil
			}
		},
		"not the aggregator": func(o *Options) {
			o.TLS = func() (*tls.Config, error) { c := a.tls.Clone(); c.ServerName = "kms-health-reporter"; return c, nil }
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := a.options(t)
			c(&o)
			p := run(t, o)
			now := time.Now()
			report := write(now)
			report.Until = now.Add(100 * time.Millisecond)
			if err := p.Apply(t.Context(), report); !errors.Is(err, ErrNoStream) || time.Since(now) > 5*time.Second {
				t.Errorf("after %v: %v", time.Since(now), err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if err := p.Ready(ctx); !errors.Is(err, context.Canceled) {
				t.Errorf("ready: %v", err)
			}
		})
	}
	if len(a.streams) > 0 {
		t.Error("a stream began")
	}
}
