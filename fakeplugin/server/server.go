package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	kmsapi "k8s.io/kms/apis/v2"
	"k8s.io/utils/clock"

	"github.com/kmsharness/kmsharness/fakeplugin/endpoint"
	"github.com/kmsharness/kmsharness/fakeplugin/fault"
	"github.com/kmsharness/kmsharness/fakeplugin/journal"
	"github.com/kmsharness/kmsharness/internal/host"
	"github.com/kmsharness/kmsharness/internal/turn"
)

// Options of a Server. Listen, Plugin and KeyID are required.
type Options struct {
	Listen  endpoint.Endpoint // unix only
	Mode    fs.FileMode       // of the socket file; 0 is endpoint.DefaultMode
	Node    string
	KeyID   string
	Plugin  Plugin
	Program *fault.Program
	Journal *journal.Log[journal.Call]
	Log     *slog.Logger
	Host    host.Host
	// TakeOver begins in the place of a plugin that may serve at the socket still.
	TakeOver bool
	Exit     func(code int) // ends the process, for the fault crash:how=exit; nil: that fault only takes the plugin down
}

// Server is one plugin instance on its socket.
type Server struct {
	o       Options
	clock   clock.WithTicker
	grpc    *grpc.Server
	socket  *socket
	started time.Time
	wake    chan struct{} // the faults in force changed

	relabelled relabelled
}

// streamWorkers serve calls on stacks that have grown already, which makes up for what the journal costs. When all are
// busy (or hang in a fault) gRPC starts a goroutine for the call, as it does without them.
const streamWorkers = 32

// window of gRPC's flow control, in bytes. That it is given at all is the point: otherwise gRPC estimates the bandwidth
// with a ping for every request, which is for long networks and only costs throughput on a unix socket. Requests
// are a few hundred bytes.
const window = 64 << 10

// Timing of the server's own loop.
const (
	// drainTimeout is how long calls under way may go on when the process is told to stop; it has 2 s in all.
	drainTimeout = 500 * time.Millisecond
	// retryInterval after the socket could not be brought into its state (a directory that is gone, for instance).
	retryInterval = time.Second
	// exitDelay lets the control call that asked for a crash still get its answer.
	exitDelay = 50 * time.Millisecond
)

// New is a server that does not listen yet.
func New(o Options) *Server {
	o.Mode = cmp.Or(o.Mode, endpoint.DefaultMode)
	if o.Program == nil {
		o.Program = fault.NewProgram(o.Host.Clock(), 0)
	}
	if o.Journal == nil {
		o.Journal = journal.New[journal.Call](journal.DefaultCapacity, nil)
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	o.Program.SetProfile(profileOf(o.Plugin))
	s := &Server{o: o, clock: o.Host.Clock(), started: o.Host.Clock().Now(), wake: make(chan struct{}, 1)}
	s.grpc = grpc.NewServer(grpc.ForceServerCodecV2(codec{encoding.GetCodecV2(proto.Name)}), grpc.UnaryInterceptor(s.intercept),
		grpc.WaitForHandlers(true), grpc.NumStreamWorkers(streamWorkers),
		grpc.StaticStreamWindowSize(window), grpc.StaticConnWindowSize(window))
	kmsapi.RegisterKeyManagementServiceServer(s.grpc, o.Plugin)
	s.socket = &socket{turn: turn.New(), host: o.Host, takeOver: o.TakeOver, at: o.Listen, mode: o.Mode, conns: &conns{open: map[*conn]struct{}{}}, dial: s.connect, serve: s.serve}
	return s
}

func (s *Server) serve(l net.Listener) {
	if err := s.grpc.Serve(l); err != nil && !errors.Is(err, net.ErrClosed) && !errors.Is(err, grpc.ErrServerStopped) {
		s.o.Log.Error("serve", "error", err.Error())
	}
}

// Start brings the socket into its first state, so that a mistake in the address shows before anything runs.
func (s *Server) Start() error {
	if err := s.apply(); err != nil {
		s.grpc.Stop() // it has workers from the beginning
		return fmt.Errorf("start the plugin: %w", err)
	}
	return nil
}

// Run keeps the socket as the fault program wants it until ctx ends, then stops serving and removes the socket.
func (s *Server) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		next, ok := s.o.Program.Expire()
		if err := s.apply(); err != nil {
			s.o.Log.Error("apply the faults", "error", err.Error())
			next, ok = s.clock.Now().Add(retryInterval), true
		}
		s.exitIfRequested(ctx)
		s.sleep(ctx, next, ok)
	}
	s.drain()
	if err := s.socket.end(); err != nil {
		return fmt.Errorf("stop the plugin: %w", err)
	}
	return nil
}

func (s *Server) sleep(ctx context.Context, next time.Time, limited bool) {
	var over <-chan time.Time
	if limited {
		timer := s.clock.NewTimer(next.Sub(s.clock.Now()))
		defer timer.Stop()
		over = timer.C()
	}
	select {
	case <-ctx.Done():
	case <-s.wake:
	case <-over:
	}
}

func (s *Server) exitIfRequested(ctx context.Context) {
	code := s.o.Program.Socket().Exit
	if code == nil || s.o.Exit == nil {
		return
	}
	if s.wait(ctx, fault.Wait{For: exitDelay}) {
		s.o.Exit(*code)
	}
}

// drain lets calls under way end, but not for long: one that hangs would never.
func (s *Server) drain() {
	done := make(chan struct{})
	go func() { s.grpc.GracefulStop(); close(done) }()
	timer := s.clock.NewTimer(drainTimeout)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C():
		s.socket.conns.closeAll() // gRPC would wait for the preface of one on which nothing was sent
		s.grpc.Stop()
		<-done
	}
}

// apply makes the socket what the faults in force want.
func (s *Server) apply() error { return s.socket.become(s.o.Program.Socket) }

// changed tells Run that other faults are in force: the next one to expire may be another.
func (s *Server) changed() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}
