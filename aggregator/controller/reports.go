package controller

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kmsharness/kmsharness/aggregator/core"
	"github.com/kmsharness/kmsharness/aggregator/reconcile"
	"github.com/kmsharness/kmsharness/aggregator/streams"
	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/contract/healthproto"
	healthv1 "github.com/kmsharness/kmsharness/contract/proto/kmsharness/health/v1"
	"github.com/kmsharness/kmsharness/internal/turn"
	reporter "github.com/kmsharness/kmsharness/reporter/core"
	"github.com/kmsharness/kmsharness/reporter/publish"
)

// Streaming is for reporters that stream their reports to the aggregator (docs/contract.md, "Streaming").
type Streaming struct {
	Address string // host:port that streams are served on
	// TLS must demand a client certificate and verify it: the node of a stream is that of the certificate.
	TLS *tls.Config
	// Form in which reports are written to the operator's CR.
	Form publish.Form
	// Server are further options of the server. Aggregators that are wrong on purpose intercept streams with them; see scenarios/mutants.
	Server []grpc.ServerOption
}

// reportServer serves the streams of reporters. A replica that does not lead refuses them.
type reportServer struct {
	healthv1.UnimplementedHealthServiceServer
	c       *Controller
	applier applier
	mu      sync.Mutex
	term    *term // nil while this replica does not lead
}

// applier applies a report under a field manager: publish.Applier.
type applier interface {
	Apply(ctx context.Context, manager string, body []byte) error
}

// term is the streams of one term as leader.
type term struct {
	ctx      context.Context
	sessions *streams.Sessions
	// removing is held while entries are removed from the CR, and read-held by each write of a report: none may land after the removal of its node's.
	removing sync.RWMutex
	cr       atomic.Pointer[unstructured.Unstructured] // as of the last pass
	config   atomic.Pointer[healthv1.Configuration]
	mu       sync.Mutex
	streams  map[streams.ID]*reportStream
	nodes    map[string]turn.Turn // by node: held while a report of it is being written
	handlers sync.WaitGroup
}

// node is the lock of a node: its reports are written one after another, also those of two streams.
func (t *term) node(name string) turn.Turn {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.nodes[name] == nil {
		t.nodes[name] = turn.New()
	}
	return t.nodes[name]
}

type reportStream struct {
	node       string
	id         streams.ID
	stands     chan struct{} // closed once the EncryptionHealth shows the stream
	configured chan struct{} // has one value when the configuration has changed
	end        context.CancelCauseFunc
	transition publish.Transition
}

// serve serves streams until ctx ends.
func (s *reportServer) serve(ctx context.Context) error {
	listener, err := s.c.Host.Listen(ctx, "tcp", s.c.Streaming.Address)
	if err != nil {
		return fmt.Errorf("listen for the streams of reporters: %w", err)
	}
	return s.serveOn(ctx, listener)
}

// serveOn serves streams on a listener until ctx ends, and closes it.
func (s *reportServer) serveOn(ctx context.Context, listener net.Listener) error {
	server := s.newServer()
	healthv1.RegisterHealthServiceServer(server, s)
	s.c.Log.Info("serving the streams of reporters", "address", listener.Addr().String())
	defer context.AfterFunc(ctx, server.Stop)()
	if err := server.Serve(listener); err != nil && ctx.Err() == nil {
		return fmt.Errorf("serve the streams of reporters on %s: %w", listener.Addr(), err)
	}
	server.Stop()
	return nil
}

// lead begins a term; it ends with ctx, or with the function that is returned, which waits until nothing is written for its streams any more.
func (s *reportServer) lead(ctx context.Context) (t *term, end func()) {
	ctx, cancel := context.WithCancel(ctx)
	t = &term{ctx: ctx, sessions: &streams.Sessions{}, streams: map[streams.ID]*reportStream{}, nodes: map[string]turn.Turn{}}
	s.mu.Lock()
	s.term = t
	s.mu.Unlock()
	return t, func() {
		s.mu.Lock()
		s.term = nil
		s.mu.Unlock()
		cancel()
		t.handlers.Wait()
	}
}

// enter is the present term, in which the caller is a handler until it calls Done.
func (s *reportServer) enter() *term {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.term != nil {
		s.term.handlers.Add(1)
	}
	return s.term
}

// Report implements healthv1.HealthServiceServer.
func (s *reportServer) Report(stream grpc.BidiStreamingServer[healthv1.ReportRequest, healthv1.ReportResponse]) error {
	node, expires, err := nodeOfPeer(stream.Context())
	if err != nil {
		s.c.Log.Warn("refused a stream", "client", addressOf(stream.Context()), "error", err)
		return err
	}
	t := s.enter()
	if t == nil {
		return status.Error(codes.FailedPrecondition, "this replica is not the leader")
	}
	defer t.handlers.Done()
	ctx, cancel := context.WithCancelCause(stream.Context())
	defer cancel(nil)
	expiry := time.AfterFunc(expires.Sub(s.c.Clock.Now()), func() { cancel(status.Error(codes.Unauthenticated, "the certificate has expired")) })
	defer expiry.Stop()
	defer context.AfterFunc(t.ctx, func() { cancel(status.Error(codes.FailedPrecondition, "this replica is not the leader any more")) })()
	x, err := t.open(node, cancel)
	if err != nil {
		return status.Error(codes.NotFound, err.Error())
	}
	s.c.trigger.changed()
	defer func() {
		if t.close(x) {
			s.c.trigger.changed()
		}
	}()
	s.c.Log.Info("stream of a reporter began", "node", node)
	err = s.converse(ctx, t, x, stream)
	s.c.Log.Info("stream of a reporter ended", "node", node, "error", err)
	return err
}

// nodeOfPeer is the node that a client's certificate is for, and when the certificate expires: a stream outlives it no more than a request would.
func nodeOfPeer(ctx context.Context) (node string, expires time.Time, err error) {
	p, _ := peer.FromContext(ctx)
	if p == nil {
		return "", expires, status.Error(codes.Unauthenticated, "no client")
	}
	info, ok := p.AuthInfo.(credentials.TLSInfo)
	if !ok || len(info.State.VerifiedChains) == 0 {
		return "", expires, status.Error(codes.Unauthenticated, "a certificate of a reporter is required")
	}
	leaf := info.State.VerifiedChains[0][0]
	node, ok = contract.NodeOfIdentity(leaf.Subject.CommonName, leaf.Subject.Organization)
	if !ok {
		return "", expires, status.Errorf(codes.Unauthenticated, "user %q is not the reporter of a node", contract.SafeText(leaf.Subject.CommonName, 128))
	}
	return node, leaf.NotAfter, nil
}

// converse serves a stream until it ends.
func (s *reportServer) converse(ctx context.Context, t *term, x *reportStream, stream grpc.BidiStreamingServer[healthv1.ReportRequest, healthv1.ReportResponse]) error {
	greet, cancel := context.WithTimeout(ctx, reconcile.GreetingTimeout)
	defer cancel()
	select {
	case <-x.stands:
	case <-greet.Done():
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return status.Error(codes.Unavailable, "the stream could not be shown on the EncryptionHealth in time")
	}
	requests := make(chan *healthv1.ReportRequest)
	received := make(chan error, 1)
	go func() { // ends with the stream, which ends with its handler
		for {
			r, err := stream.Recv()
			if err != nil {
				received <- err
				return
			}
			select {
			case requests <- r:
			case <-stream.Context().Done():
				return
			}
		}
	}()
	for {
		var response healthv1.ReportResponse
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case err := <-received:
			return err
		case <-x.configured:
			response.Content = &healthv1.ReportResponse_Configuration{Configuration: t.config.Load()}
		case r := <-requests:
			code, err := s.relay(ctx, t, x, r)
			acknowledgement := &healthv1.Acknowledgement{Sequence: r.GetSequence(), Code: code}
			if err != nil {
				acknowledgement.Message = contract.SafeDetail(err.Error())
			}
			response.Content = &healthv1.ReportResponse_Acknowledgement{Acknowledgement: acknowledgement}
		}
		if err := stream.Send(&response); err != nil {
			return err
		}
	}
}

// relay writes a report to the operator's CR, under the field manager of its node and as it was sent. code is the HTTP status of the API server, 0 if there was no answer.
func (s *reportServer) relay(ctx context.Context, t *term, x *reportStream, r *healthv1.ReportRequest) (code int32, err error) {
	report, lastKEKID, err := healthproto.Report(x.node, r.GetPlugins())
	if err != nil {
		return http.StatusBadRequest, err
	}
	replica, err := streams.Replica(report, r.GetObservedGeneration())
	if err != nil {
		return http.StatusBadRequest, fmt.Errorf("the EncryptionHealth cannot show the report: %w", err)
	}
	timeout := reconcile.RequestTimeout
	if d := r.GetTimeout(); d.CheckValid() == nil {
		timeout = min(timeout, max(d.AsDuration(), 0))
	}
	until := s.c.Clock.Now().Add(timeout)
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	at, ok := t.sessions.Admit(x.node, s.c.Interval, s.c.Clock.Now(), until)
	if !ok {
		return http.StatusTooManyRequests, fmt.Errorf("the node sends too many reports: the next one is accepted at %s", at.UTC().Format(time.RFC3339))
	}
	if err := s.await(ctx, at); err != nil {
		return http.StatusTooManyRequests, fmt.Errorf("the node sends too many reports: %w", err)
	}
	lock := t.node(x.node)
	lock.Lock()
	defer lock.Unlock()
	if err := s.await(ctx, t.sessions.Decided(x.node)); err != nil {
		return 0, fmt.Errorf("an earlier report of %s is not decided yet: %w", x.node, err)
	}
	t.removing.RLock()
	defer t.removing.RUnlock()
	if ctx.Err() != nil { // the term or the reporter's patience ended meanwhile
		return 0, fmt.Errorf("apply the report of %s: %w", x.node, context.Cause(ctx))
	}
	if !t.sessions.Current(x.node, x.id) {
		return http.StatusConflict, errors.New("the stream does not speak for its node any more")
	}
	if _, known := x.transition.Known(); !known {
		x.transition = publish.TransitionAt(transitionOf(t.cr.Load(), x.node, s.c.Clock.Now()))
	}
	body, _, err := publish.Body(publish.Operator(s.c.Operator.Name), s.c.Streaming.Form, reporter.Action{Report: report, LastKEKID: lastKEKID}, &x.transition)
	if err != nil {
		return http.StatusBadRequest, err
	}
	err = s.applier.Apply(ctx, contract.FieldManager(x.node), body)
	s.c.metrics.wrote("report", err)
	if err != nil {
		code := codeOf(err)
		if code == 0 {
			t.sessions.Unanswered(x.node, until)
		}
		return int32(code), fmt.Errorf("apply the report of %s: %w", x.node, err)
	}
	if t.sessions.Reported(x.id, replica) {
		s.c.trigger.changed()
	}
	return http.StatusOK, nil
}

// await waits until an instant.
func (s *reportServer) await(ctx context.Context, at time.Time) error {
	wait := at.Sub(s.c.Clock.Now())
	if wait <= 0 {
		return ctx.Err()
	}
	timer := s.c.Clock.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C():
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// transitionOf is the lastTransitionTime of a node's condition, which must not move; now if there is no such condition.
func transitionOf(cr *unstructured.Unstructured, node string, now time.Time) time.Time {
	if cr != nil {
		for _, c := range core.ReadConditions(cr.Object) {
			if c.Type == contract.ConditionType(node) && c.Status == contract.ReporterConditionStatus && !c.LastTransitionTime.IsZero() {
				return c.LastTransitionTime
			}
		}
	}
	return now
}

func (t *term) open(node string, end context.CancelCauseFunc) (*reportStream, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	id, surplus, err := t.sessions.Open(node)
	if err != nil {
		return nil, err
	}
	if old := t.streams[surplus]; old != nil {
		old.end(status.Errorf(codes.ResourceExhausted, "the node has more than %d streams", streams.MaxStreams))
	}
	x := &reportStream{node: node, id: id, stands: make(chan struct{}), configured: make(chan struct{}, 1), end: end}
	t.streams[id] = x
	return x, nil
}

func (t *term) close(x *reportStream) (changed bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.streams, x.id)
	return t.sessions.Close(x.node, x.id)
}

// passed carries out what a pass says of streams.
func (t *term) passed(done reconcile.Action, cr, health *unstructured.Unstructured) {
	t.cr.Store(cr)
	config := configuration(health)
	old := t.config.Swap(config)
	changed := old == nil || old.GetGeneration() != config.GetGeneration()
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, id := range done.Ended {
		if x := t.streams[id]; x != nil {
			x.end(status.Error(codes.NotFound, streams.ErrNotExpected.Error()))
		}
	}
	for _, id := range done.Standing {
		if x := t.streams[id]; x != nil {
			x.configure()
			close(x.stands)
		}
	}
	if !changed {
		return
	}
	for _, x := range t.streams {
		select {
		case <-x.stands:
			x.configure()
		default:
		}
	}
}

func (x *reportStream) configure() {
	select {
	case x.configured <- struct{}{}:
	default: // it has not sent the last one yet, and will send the newest
	}
}

// configuration is what reporters receive of an EncryptionHealth: never its status.
func configuration(health *unstructured.Unstructured) *healthv1.Configuration {
	if health == nil {
		return &healthv1.Configuration{}
	}
	keyIDs, _, _ := unstructured.NestedStringSlice(health.Object, "spec", "keyIDs")
	return &healthv1.Configuration{Generation: health.GetGeneration(), KeyIds: keyIDs}
}
