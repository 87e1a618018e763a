package controller

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/timestamppb"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/kmsharness/kmsharness/aggregator/core"
	"github.com/kmsharness/kmsharness/aggregator/reconcile"
	"github.com/kmsharness/kmsharness/contract"
	healthv1 "github.com/kmsharness/kmsharness/contract/proto/kmsharness/health/v1"
	"github.com/kmsharness/kmsharness/harness/controlplane/certtest"
	reporter "github.com/kmsharness/kmsharness/reporter/core"
	"github.com/kmsharness/kmsharness/reporter/publish"
	"github.com/kmsharness/kmsharness/reporter/stream"
)

// authority signs the certificates of reporters and of the aggregator.
type authority struct{ *certtest.Authority }

func newAuthority(t testing.TB) authority { return authority{certtest.New(t)} }

func (a authority) reporter(node string) *tls.Certificate {
	return a.Client(contract.ReporterIdentity(node), []string{contract.ReporterGroup}, time.Now().Add(30*time.Minute))
}

// client is the TLS configuration of a client; certificate may be nil.
func (a authority) client(certificate *tls.Certificate) *tls.Config {
	c := &tls.Config{MinVersion: tls.VersionTLS13, RootCAs: a.Pool(), ServerName: contract.AggregatorServerName}
	if certificate != nil {
		// Also if the server's list of authorities does not have its own.
		c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return certificate, nil }
	}
	return c
}

// replica is a replica of the aggregator that serves streams on loopback. Its passes show streams and do nothing else; its API server notes what is applied.
type replica struct {
	testing.TB
	authority authority
	c         *Controller
	listener  *countedListener
	health    *unstructured.Unstructured
	mu        sync.Mutex
	applied   []string // field managers
	body      []byte   // of the last apply
	writing   int      // applies that are under way
	most      int      // of them at the same time
	hold      chan struct{}
	refuse    error
	nodes     []string
	term      *term
	rest      func() // ends the term
	passes    sync.WaitGroup
	queue     queue
}

func newReplica(t testing.TB, a authority, change func(*Controller)) *replica {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	return newReplicaOn(t, a, listener, change)
}

func newReplicaOn(t testing.TB, a authority, listener net.Listener, change func(*Controller)) *replica {
	t.Helper()
	op, err := core.OperatorByName("kubeapiserver")
	must(t, err)
	m, err := newMetrics(prometheus.NewRegistry())
	must(t, err)
	r := &replica{TB: t, authority: a, nodes: []string{"cp-1", "cp-2", "cp-3"}, health: newObject(contract.HealthGroup+"/"+contract.HealthVersion, contract.HealthKind, op.Name, map[string]any{})}
	r.health.SetGeneration(1)
	r.c = &Controller{
		Config: Config{Operator: op, Log: slog.New(slog.NewTextHandler(t.Output(), nil)), Clock: clock.RealClock{}, Streaming: &Streaming{Form: publish.Conditions, TLS: &tls.Config{
			MinVersion: tls.VersionTLS13, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: a.Pool(), NextProtos: []string{"h2"},
			Certificates: []tls.Certificate{*a.Server(contract.AggregatorServerName)}}}},
		metrics: m, trigger: &trigger{clock: clock.RealClock{}},
	}
	r.c.reports = &reportServer{c: r.c, applier: r}
	if change != nil {
		change(r.c)
	}
	r.listener = &countedListener{Listener: listener}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- r.c.reports.serveOn(ctx, r.listener) }()
	t.Cleanup(func() {
		r.lose()
		cancel()
		must(t, <-served)
	})
	return r
}

// Apply is the API server.
func (r *replica) Apply(_ context.Context, manager string, body []byte) error {
	r.mu.Lock()
	r.writing++
	r.most = max(r.most, r.writing)
	hold, refuse := r.hold, r.refuse
	r.mu.Unlock()
	if hold != nil {
		<-hold
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.writing--; refuse != nil {
		return refuse
	}
	r.applied, r.body = append(r.applied, manager), body
	return nil
}

// lead begins a term. With passes, each change is shown at once.
func (r *replica) lead(passes bool) *replica {
	r.term, r.rest = r.c.reports.lead(context.Background())
	r.pass()
	if passes {
		r.queue = newQueue()
		r.c.trigger.use(r.queue)
		r.passes.Go(func() {
			for {
				key, down := r.queue.Get()
				if down {
					return
				}
				r.pass()
				r.queue.Done(key)
			}
		})
	}
	return r
}

// lose ends a term.
func (r *replica) lose() {
	if r.term == nil {
		return
	}
	r.rest()
	r.c.trigger.use(nil)
	if r.queue != nil {
		r.queue.ShutDown()
	}
	r.passes.Wait()
	r.term, r.queue = nil, nil
}

// pass shows the streams.
func (r *replica) pass() {
	r.mu.Lock()
	nodes, health := r.nodes, r.health
	r.mu.Unlock()
	ended := r.term.sessions.Expect(nodes)
	picture := r.term.sessions.Picture()
	r.term.passed(reconcile.Action{Ended: ended, Standing: r.term.sessions.Shown(picture)}, nil, health)
}

// says is what the EncryptionHealth would say of a node.
func (r *replica) says(node string) string {
	p := r.term.sessions.Picture().Replicas[node]
	return p.Status + "/" + p.Reason
}

func (r *replica) writes() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.applied)
}

func (r *replica) address() string { return r.listener.Addr().String() }

// streams is how many are served.
func (r *replica) streams() string {
	r.term.mu.Lock()
	defer r.term.mu.Unlock()
	return number(float64(len(r.term.streams)))
}

// countedListener counts connections.
type countedListener struct {
	net.Listener
	mu       sync.Mutex
	accepted int
	open     int
}

type countedConn struct {
	net.Conn
	closed func()
}

func (c countedConn) Close() error { c.closed(); return c.Conn.Close() }

func (l *countedListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.accepted++
	l.open++
	return countedConn{conn, sync.OnceFunc(func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.open--
	})}, nil
}

func (l *countedListener) connections() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return number(float64(l.open)) + " of " + number(float64(l.accepted))
}

type reportClient = grpc.BidiStreamingClient[healthv1.ReportRequest, healthv1.ReportResponse]

// dial begins a stream without a Publisher.
func (r *replica) dial(config *tls.Config) reportClient {
	r.Helper()
	conn, err := grpc.NewClient("passthrough:///"+r.address(), grpc.WithTransportCredentials(credentials.NewTLS(config)), grpc.WithDisableServiceConfig())
	must(r, err)
	r.Cleanup(func() { must(r, conn.Close()) })
	s, err := healthv1.NewHealthServiceClient(conn).Report(context.Background(), grpc.WaitForReady(false))
	if err != nil {
		return failedStream{err: err}
	}
	return s
}

type failedStream struct {
	reportClient
	err error
}

func (f failedStream) Recv() (*healthv1.ReportResponse, error) { return nil, f.err }

func codeOfStream(s reportClient) codes.Code {
	for {
		if _, err := s.Recv(); err != nil {
			return status.Code(err)
		}
	}
}

func requestOf(sequence uint64, plugins ...*healthv1.PluginHealth) *healthv1.ReportRequest {
	if len(plugins) == 0 {
		plugins = []*healthv1.PluginHealth{{KeyId: "1", KekId: "kek", Outcome: healthv1.Outcome_OUTCOME_HEALTHY, LastChecked: timestamppb.Now()}}
	}
	return &healthv1.ReportRequest{Sequence: sequence, Plugins: plugins}
}

// client is a reporter's Publisher.
type client struct {
	*stream.Publisher
	testing.TB
}

func publisher(t testing.TB, config func() (*tls.Config, error), replicas ...*replica) client {
	o := stream.Options{TLS: config, KeyIDs: []string{"1"}, Timing: contract.DefaultTiming(), Log: slog.New(slog.NewTextHandler(t.Output(), nil)), Now: time.Now}
	for _, r := range replicas {
		o.Aggregators = append(o.Aggregators, r.address())
	}
	p := stream.New(o)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { p.Run(ctx) })
	t.Cleanup(func() { cancel(); running.Wait() })
	return client{p, t}
}

func (r *replica) publisher(node string) client {
	return publisher(r.TB, func() (*tls.Config, error) { return r.authority.client(r.authority.reporter(node)), nil }, r)
}

// ready reports whether a stream stands within a time.
func (c client) ready(within time.Duration) bool {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	return c.Ready(ctx) == nil
}

func (c client) report(node string, within time.Duration) error {
	now := time.Now()
	return c.Apply(context.Background(), reporter.Action{Kind: reporter.Write, Until: now.Add(within), Next: now.Add(within + time.Minute),
		Report: contract.Report{Node: node, Entries: []contract.Entry{{KeyID: "1", KEKID: "kek", Status: contract.StatusHealthy, LastChecked: now}}}})
}

const soon = 10 * time.Second // never waited for

// S1-03: who cannot be identified as the reporter of a node is refused, and nothing is shown or written.
func TestStreamsNeedAnIdentity(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	t.Run("refused", func(t *testing.T) {
		a := newAuthority(t)
		r := newReplica(t, a, nil).lead(true)
		name, group, later := contract.ReporterIdentity("cp-1"), []string{contract.ReporterGroup}, time.Now().Add(time.Minute)
		for what, c := range map[string]struct {
			certificate *tls.Certificate
			want        codes.Code
		}{
			"no certificate":                   {nil, codes.Unavailable},
			"another authority":                {newAuthority(t).Client(name, group, later), codes.Unavailable},
			"an expired certificate":           {a.Client(name, group, time.Now().Add(-time.Minute)), codes.Unavailable},
			"the aggregator's":                 {a.Client(contract.AggregatorIdentity, nil, later), codes.Unauthenticated},
			"an administrator's":               {a.Client("kubernetes-admin", []string{"system:masters"}, later), codes.Unauthenticated},
			"a reporter's name, another group": {a.Client(name, []string{"system:masters"}, later), codes.Unauthenticated},
			"a reporter's group, another name": {a.Client("cp-1", group, later), codes.Unauthenticated},
			"a reporter of no node":            {a.Client(contract.ReporterIdentityPrefix, group, later), codes.Unauthenticated},
			"a node that nobody expects":       {a.reporter("cp-9"), codes.NotFound},
		} {
			if got := codeOfStream(r.dial(a.client(c.certificate))); got != c.want {
				t.Errorf("%s: %v, want %v", what, got, c.want)
			}
		}
		if r.streams() != "0" || r.writes() != 0 || r.says("cp-1") != "Unknown/Disconnected" {
			t.Errorf("%s streams, %d writes, cp-1 is %s", r.streams(), r.writes(), r.says("cp-1"))
		}
	})
	t.Run("refused by more than TLS", func(t *testing.T) {
		a := newAuthority(t)
		r := newReplica(t, a, func(c *Controller) { c.Streaming.TLS.ClientAuth = tls.RequestClientCert }).lead(true)
		for what, certificate := range map[string]*tls.Certificate{"no certificate": nil, "another authority": newAuthority(t).reporter("cp-1")} {
			if got := codeOfStream(r.dial(a.client(certificate))); got != codes.Unauthenticated {
				t.Errorf("%s: %v", what, got)
			}
		}
	})
}

// S1-03: a stream ends with the certificate that it was begun with.
func TestStreamEndsWithItsCertificate(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	t.Run("", func(t *testing.T) {
		a, expires := newAuthority(t), time.Now().Add(time.Hour).Truncate(time.Second)
		r := newReplica(t, a, func(c *Controller) { c.Clock = clocktesting.NewFakeClock(expires.Add(-200 * time.Millisecond)) }).lead(true)
		s := r.dial(a.client(a.Client(contract.ReporterIdentity("cp-1"), []string{contract.ReporterGroup}, expires)))
		if _, err := s.Recv(); err != nil {
			t.Fatalf("before it expires: %v", err)
		}
		if got := codeOfStream(s); got != codes.Unauthenticated {
			t.Errorf("ended with %v", got)
		}
		eventually(t, soon, "Unknown/Disconnected", func() string { return r.says("cp-1") })
	})
}

// S1-04: a replica that does not lead refuses, and the client goes round to the one that does. Losing the lead ends all streams, and nothing is written after it.
func TestStreamsFollowTheLeader(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	t.Run("", func(t *testing.T) {
		a := newAuthority(t)
		first, second := newReplica(t, a, nil), newReplica(t, a, nil).lead(true)
		if got := codeOfStream(first.dial(a.client(a.reporter("cp-1")))); got != codes.FailedPrecondition {
			t.Errorf("from a replica that does not lead: %v", got)
		}
		p := publisher(t, func() (*tls.Config, error) { return a.client(a.reporter("cp-1")), nil }, first, second)
		if !p.ready(soon) {
			t.Fatal("no stream to the leader")
		}
		must(t, p.report("cp-1", soon))
		witness := second.dial(a.client(a.reporter("cp-2")))
		if _, err := witness.Recv(); err != nil {
			t.Fatal(err)
		}
		second.lose()
		written := second.writes()
		if got := codeOfStream(witness); got != codes.FailedPrecondition {
			t.Errorf("a stream of a leader that lost the lead ended with %v", got)
		}
		first.lead(true)
		eventually(t, soon, "True/AsExpected", func() string { return first.says("cp-1") })
		if first.writes() == 0 || second.writes() != written {
			t.Errorf("%d writes of the new leader, %d of the old one after it lost the lead", first.writes(), second.writes()-written)
		}
	})
}

// S1-04: a write that is under way when the lead is lost is awaited, and is the last one.
func TestLosingTheLeadWaitsForWrites(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	t.Run("", func(t *testing.T) {
		r := newReplica(t, newAuthority(t), nil)
		r.hold = make(chan struct{})
		r.lead(true)
		s := r.dial(r.authority.client(r.authority.reporter("cp-1")))
		must(t, s.Send(requestOf(1)))
		must(t, s.Send(requestOf(2)))
		eventually(t, soon, "1", func() string { r.mu.Lock(); defer r.mu.Unlock(); return number(float64(r.writing)) })
		lost := make(chan struct{})
		go func() { r.rest(); close(lost) }()
		if got := codeOfStream(r.dial(r.authority.client(r.authority.reporter("cp-2")))); got != codes.FailedPrecondition {
			t.Errorf("another stream: %v", got)
		}
		select {
		case <-lost:
			t.Error("the term ended while a report was being written")
		default:
		}
		close(r.hold)
		<-lost
		if r.writes() != 1 {
			t.Errorf("%d writes, want the one that was under way", r.writes())
		}
	})
}

// S1-02: a node is Unknown until its first report on a stream, and nothing is reported before the stream stands.
func TestUnknownUntilReported(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	t.Run("", func(t *testing.T) {
		r := newReplica(t, newAuthority(t), nil).lead(false)
		p := r.publisher("cp-1")
		eventually(t, soon, "Unknown/Connected", func() string { return r.says("cp-1") })
		if p.ready(50 * time.Millisecond) {
			t.Error("the stream stands before the EncryptionHealth shows it")
		}
		if err := p.report("cp-1", 50*time.Millisecond); !errors.Is(err, stream.ErrNoStream) || r.writes() != 0 {
			t.Errorf("a report before the stream stands: %v, %d writes", err, r.writes())
		}
		r.pass()
		if !p.ready(soon) || r.says("cp-1") != "Unknown/Connected" && r.says("cp-1") != "True/AsExpected" {
			t.Errorf("after a pass: %s", r.says("cp-1"))
		}
		eventually(t, soon, "True/AsExpected", func() string { return r.says("cp-1") }) // it was not too old yet
		r.lose()
	})
}

// S1-05: what was reported is reported again on each new stream, whatever ended the one before. S1-10: each stream has a connection of its own, which ends with it.
func TestReportedAgainAfterReconnect(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	t.Run("", func(t *testing.T) {
		r := newReplica(t, newAuthority(t), nil).lead(true)
		p := r.publisher("cp-1")
		must(t, p.report("cp-1", soon))
		for n, broken := range []string{"1 of 1", "1 of 2", "1 of 3"} {
			eventually(t, soon, broken, r.listener.connections)
			eventually(t, soon, "True/AsExpected", func() string { return r.says("cp-1") })
			before := r.writes()
			r.term.mu.Lock()
			for _, x := range r.term.streams {
				x.end(status.Error(codes.Unavailable, "ended by the test"))
			}
			r.term.mu.Unlock()
			eventually(t, soon, "true", func() string {
				if r.writes() > before {
					return "true"
				}
				return r.streams() + " streams, " + r.listener.connections() + " connections"
			})
			if got := r.writes() - before; got > 2 {
				t.Errorf("reconnect %d: written %d times again", n+1, got)
			}
		}
	})
}

// A report that is not acknowledged ends the stream: the reporter tries another one.
func TestUnacknowledgedReportEndsTheStream(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	t.Run("", func(t *testing.T) {
		r := newReplica(t, newAuthority(t), nil).lead(true)
		p := r.publisher("cp-1")
		if !p.ready(soon) {
			t.Fatal("no stream")
		}
		hold := make(chan struct{})
		r.mu.Lock()
		r.hold = hold
		r.mu.Unlock()
		if err := p.report("cp-1", 100*time.Millisecond); err == nil || !strings.Contains(err.Error(), "no acknowledgement") {
			t.Errorf("a report that is not written: %v", err)
		}
		r.mu.Lock()
		r.hold = nil
		r.mu.Unlock()
		close(hold)
		eventually(t, soon, "1 of 2", r.listener.connections)
		eventually(t, soon, "True/AsExpected", func() string { return r.says("cp-1") })
		must(t, p.report("cp-1", soon))
	})
}

// What the API server refuses the reporter learns, with its status. The stream goes on.
func TestRefusedReport(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	t.Run("", func(t *testing.T) {
		r := newReplica(t, newAuthority(t), nil).lead(true)
		r.refuse = apierrors.NewForbidden(operatorGVR(r.c.Operator).GroupResource(), "cluster", errors.New("no role"))
		p := r.publisher("cp-1")
		if err := p.report("cp-1", soon); !apierrors.IsForbidden(err) {
			t.Errorf("refused with %v", err)
		}
		r.mu.Lock()
		r.refuse = nil
		r.mu.Unlock()
		must(t, p.report("cp-1", soon))
		if got := r.listener.connections(); got != "1 of 1" || !slices.Equal(r.applied, []string{contract.FieldManager("cp-1")}) {
			t.Errorf("%s connections, written as %v", got, r.applied)
		}
	})
}

// What a client can make the aggregator do is bounded: one write at a time, messages of half a megabyte, two streams of a node.
func TestStreamsAreBounded(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	t.Run("flood", func(t *testing.T) {
		r := newReplica(t, newAuthority(t), nil).lead(true)
		s := r.dial(r.authority.client(r.authority.reporter("cp-1")))
		const flood = 500
		go func() {
			for n := range flood {
				if s.Send(requestOf(uint64(n+1))) != nil {
					return
				}
			}
		}()
		for want := uint64(1); want <= flood; {
			m, err := s.Recv()
			must(t, err)
			if a := m.GetAcknowledgement(); a != nil {
				if a.GetSequence() != want || a.GetCode() != http.StatusOK {
					t.Fatalf("acknowledgement %v, want that of %d", a, want)
				}
				want++
			}
		}
		if r.most != 1 {
			t.Errorf("%d writes of one stream at the same time", r.most)
		}
	})
	t.Run("message", func(t *testing.T) {
		r := newReplica(t, newAuthority(t), nil).lead(true)
		s := r.dial(r.authority.client(r.authority.reporter("cp-1")))
		must(t, s.Send(requestOf(1, &healthv1.PluginHealth{KeyId: "1", Detail: strings.Repeat("x", maxReportBytes)})))
		if got := codeOfStream(s); got != codes.ResourceExhausted || r.writes() != 0 {
			t.Errorf("ended with %v, %d writes", got, r.writes())
		}
	})
	// No admission policy narrows the aggregator: a report that it relays is cut to the bytes of a report, or refused.
	for _, form := range publish.Forms() {
		t.Run("size in the form "+string(form), func(t *testing.T) {
			r := newReplica(t, newAuthority(t), func(c *Controller) { c.Streaming.Form = form }).lead(true)
			s, wide := r.dial(r.authority.client(r.authority.reporter("cp-1"))), "\U0001F600"
			plugins := func(key string) (out []*healthv1.PluginHealth) {
				for i := range contract.MaxEntries {
					out = append(out, &healthv1.PluginHealth{KeyId: key + strconv.Itoa(i), KekId: strings.Repeat("k", contract.MaxKEKIDBytes), Outcome: healthv1.Outcome_OUTCOME_ERROR,
						LastChecked: timestamppb.Now(), Detail: strings.Repeat(wide, contract.MaxDetailChars)})
				}
				return out
			}
			must(t, s.Send(requestOf(1, plugins("")...)))
			must(t, s.Send(requestOf(2, plugins(strings.Repeat(wide, contract.MaxKeyIDChars-2))...)))
			codes := map[uint64]int32{}
			for len(codes) < 2 {
				m, err := s.Recv()
				must(t, err)
				if a := m.GetAcknowledgement(); a != nil {
					codes[a.GetSequence()] = a.GetCode()
				}
			}
			if codes[1] != http.StatusOK || codes[2] != http.StatusBadRequest || r.writes() != 1 {
				t.Errorf("answers %v, %d writes", codes, r.writes())
			}
			var cr struct {
				Status struct {
					Conditions       []struct{ Message string }
					EncryptionStatus struct{ HealthReports []contract.TypedReport }
				}
			}
			must(t, json.Unmarshal(r.body, &cr))
			bytes := 0
			for _, c := range cr.Status.Conditions {
				bytes += len(c.Message)
			}
			for _, i := range cr.Status.EncryptionStatus.HealthReports {
				bytes += len(i.KeyID) + len(i.RemoteKeyID) + len(i.Detail)
			}
			if bytes == 0 || bytes > contract.MaxReportBytes {
				t.Errorf("a report of %d bytes", bytes)
			}
		})
	}
	t.Run("malformed", func(t *testing.T) {
		r := newReplica(t, newAuthority(t), nil).lead(true)
		s := r.dial(r.authority.client(r.authority.reporter("cp-1")))
		for n, plugins := range [][]*healthv1.PluginHealth{{{}}, {{KeyId: "1", LastChecked: timestamppb.Now(), Outcome: 9}}, make([]*healthv1.PluginHealth, 33)} {
			must(t, s.Send(requestOf(uint64(n), plugins...)))
		}
		for n := 0; n < 3; {
			m, err := s.Recv()
			must(t, err)
			if a := m.GetAcknowledgement(); a != nil {
				if n++; a.GetCode() != http.StatusBadRequest || a.GetMessage() == "" {
					t.Errorf("%v", a)
				}
			}
		}
		if r.writes() != 0 {
			t.Errorf("%d writes", r.writes())
		}
	})
	t.Run("rate", func(t *testing.T) {
		r := newReplica(t, newAuthority(t), func(c *Controller) { c.Interval = time.Hour }).lead(true)
		s, codes := r.dial(r.authority.client(r.authority.reporter("cp-1"))), map[int32]int{}
		const flood = 50
		for n := range flood {
			must(t, s.Send(requestOf(uint64(n+1))))
		}
		for n := 0; n < flood; {
			m, err := s.Recv()
			must(t, err)
			if a := m.GetAcknowledgement(); a != nil {
				codes[a.GetCode()]++
				n++
			}
		}
		if r.writes() > 10 || codes[http.StatusOK] != r.writes() || codes[http.StatusTooManyRequests] != flood-r.writes() {
			t.Errorf("%d writes, answers %v", r.writes(), codes)
		}
		must(t, r.publisher("cp-2").report("cp-2", soon))
	})
	t.Run("what the EncryptionHealth cannot show", func(t *testing.T) {
		r := newReplica(t, newAuthority(t), nil).lead(true)
		s := r.dial(r.authority.client(r.authority.reporter("cp-1")))
		bad := requestOf(1)
		bad.ObservedGeneration = -1
		must(t, s.Send(bad))
		for code := int32(0); code != http.StatusBadRequest; {
			m, err := s.Recv()
			must(t, err)
			if a := m.GetAcknowledgement(); a != nil && a.GetCode() != http.StatusBadRequest {
				t.Fatalf("answered %v", a)
			} else if a != nil {
				code = a.GetCode()
			}
		}
		if r.says("cp-1") != "Unknown/Connected" || r.writes() != 0 {
			t.Errorf("cp-1 is %s after %d writes", r.says("cp-1"), r.writes())
		}
		must(t, r.publisher("cp-2").report("cp-2", soon))
	})
	t.Run("streams", func(t *testing.T) {
		r := newReplica(t, newAuthority(t), nil).lead(true)
		var all []reportClient
		for range 3 {
			s := r.dial(r.authority.client(r.authority.reporter("cp-1")))
			_, err := s.Recv()
			must(t, err)
			all = append(all, s)
		}
		if got := codeOfStream(all[0]); got != codes.ResourceExhausted {
			t.Errorf("the oldest of three ended with %v", got)
		}
		eventually(t, soon, "2", r.streams)
	})
}

// S1-06: a node that should not report any more loses its stream.
func TestRemovedNodeLosesItsStream(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	t.Run("", func(t *testing.T) {
		r := newReplica(t, newAuthority(t), nil).lead(true)
		s := r.dial(r.authority.client(r.authority.reporter("cp-1")))
		_, err := s.Recv()
		must(t, err)
		r.mu.Lock()
		r.nodes = []string{"cp-2"}
		r.mu.Unlock()
		r.pass()
		if got := codeOfStream(s); got != codes.NotFound {
			t.Errorf("ended with %v", got)
		}
	})
}

// S1-09: clients receive the spec of the EncryptionHealth, and nothing of its status. They receive it again when it has changed.
func TestStatusIsNotSent(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	t.Run("", func(t *testing.T) {
		r := newReplica(t, newAuthority(t), nil)
		full := func(generation int64, keyIDs ...any) *unstructured.Unstructured {
			h := newObject(contract.HealthGroup+"/"+contract.HealthVersion, contract.HealthKind, "kubeapiserver", map[string]any{"keyIDs": keyIDs})
			h.SetGeneration(generation)
			var s map[string]any
			must(t, json.Unmarshal([]byte(`{"readyNodes":["secret-node"],"notReadyNodes":["secret-node"],"replicas":[{"nodeName":"secret-node","status":"True","reason":"secret-reason"}],
				"conditions":[{"type":"Ready","status":"True","reason":"secret-reason","message":"secret-message"}]}`), &s))
			h.Object["status"] = s
			return h
		}
		r.health = full(4, "1", "2")
		r.lead(true)
		s := r.dial(r.authority.client(r.authority.reporter("cp-1")))
		receive := func(want *healthv1.Configuration) {
			m, err := s.Recv()
			must(t, err)
			text := protojson.Format(m)
			if c := m.GetConfiguration(); c.GetGeneration() != want.GetGeneration() || !slices.Equal(c.GetKeyIds(), want.GetKeyIds()) || strings.Contains(text, "secret") {
				t.Errorf("received %s, want %s", text, protojson.Format(want))
			}
		}
		receive(&healthv1.Configuration{Generation: 4, KeyIds: []string{"1", "2"}})
		r.mu.Lock()
		r.health = full(5, "2")
		r.mu.Unlock()
		r.pass()
		receive(&healthv1.Configuration{Generation: 5, KeyIds: []string{"2"}})
	})
}
