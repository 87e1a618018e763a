package mutants

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/util/wait"
	restclient "k8s.io/client-go/rest"

	"github.com/kmsharness/kmsharness/aggregator/controller"
	"github.com/kmsharness/kmsharness/aggregator/reconcile"
	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/contract/healthproto"
	healthv1 "github.com/kmsharness/kmsharness/contract/proto/kmsharness/health/v1"
	"github.com/kmsharness/kmsharness/harness/cluster/virtual"
	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/reporter"
	"github.com/kmsharness/kmsharness/reporter/core"
	"github.com/kmsharness/kmsharness/reporter/publish"
	"github.com/kmsharness/kmsharness/reporter/stream"
)

func streamingReporters() []Mutant {
	return []Mutant{
		{
			Name: "stream-nothing-sent-again", Scenario: "stream-resets", Caught: []string{"steps[2].expect"}, Virtual: streaming(forgetting),
			Mistake: "a reporter that sends each report once: the aggregator, or its successor, hears nothing of the node until the next tick",
		},
		{
			Name: "stream-probes-unheard", Scenario: "stream-cold-start-aggregator-last", Caught: []string{"steps[3].never"}, Virtual: reporting(probesFromItsStart),
			Mistake: "a reporter that probes from its start, although there is nobody yet to report to",
		},
		{
			Name: "stream-and-apply", Scenario: "stream-plugin-fails", Caught: []string{"LEAST-PRIVILEGE"}, Virtual: reporting(writesItself),
			Mistake: "a reporter that applies its report besides, to be safe: its identity needs rights on the API after all",
		},
		{
			Name: "stream-generation-not-observed", Scenario: "stream-plugin-fails", Caught: []string{"steps[0].expect"},
			Virtual: streaming(observingNothing()),
			Mistake: "a reporter that does not say which configuration it has: no node is ever ready",
		},
		{
			Name: "stream-queue-and-flush", Scenario: "stream-load-balancer-black-hole", Caught: []string{"FRESH-ONLY"}, Virtual: publishing(queueAndFlush),
			Mistake: "a queue in front of the stream: after an outage of the aggregator the results of all of it are sent, the oldest first",
		},
		{
			Name: "stream-certificate-read-once", Scenario: "stream-credential-expires", Caught: []string{"CADENCE"}, Virtual: reporting(keepCredential),
			Mistake: "a TLS configuration that is made at the start: the certificate is renewed, and each new stream is refused with the old one",
		},
	}
}

// streamingAggregators is aggregators that serve streams wrongly, or show them wrongly.
func streamingAggregators() []Mutant {
	truth := []string{"STREAM-TRUTH"}
	return []Mutant{
		{
			Name: "stream-ok-while-disconnected", Scenario: "stream-reporter-killed", Caught: truth, Virtual: intercepting(deafToTheEnd),
			Mistake: "the last report for as long as no other one comes: a node whose reporter is gone goes on being healthy",
		},
		{
			Name: "stream-served-by-any-replica", Scenario: "stream-leader-killed", Caught: truth, Virtual: withoutLead("this replica is not the leader"),
			Mistake: "replicas that do not lead serve streams as well: each hears a part of the nodes, and the one that shows them does not hear the others",
		},
		{
			Name: "stream-outlives-the-lead", Scenario: "stream-lead-lost", Caught: truth, Virtual: withoutLead("this replica is not the leader any more"),
			Mistake: "a replica that loses the lease and keeps its streams, and writes what they bring: its successor waits for reporters in vain",
		},
		{
			Name: "stream-identity-not-verified", Scenario: "stream-speaks-for-its-node", Caught: []string{"steps[2].parallel[1].never"},
			Virtual: intercepting(believingClaims),
			Mistake: "the node as the client calls it, in place of that of its certificate: one reporter speaks for another's node",
		},
		{
			Name: "stream-certificate-forged", Scenario: "stream-speaks-for-its-node", Caught: []string{"steps[3]"},
			Virtual: aggregatesBy(anyAuthority),
			Mistake: "a server that asks for a certificate and takes any, RequireAnyClientCert in place of RequireAndVerifyClientCert: everybody can make one with the name of a reporter",
		},
		{
			Name: "stream-relayed-late", Scenario: "stream-load-balancer-black-hole", Caught: []string{"FRESH-ONLY"}, Virtual: aggregatesBy(relayingUntilWritten),
			Mistake: "an aggregator that tries each report until it is written: after an outage those of all of it are written, and none of them is true any more",
		},
		{
			Name: "stream-written-in-its-own-name", Scenario: "stream-plugin-fails", Caught: []string{"OWNERSHIP"},
			Virtual: aggregatesBy(func(a *startingAggregator) {
				changeRequests(&a.Host, patched(func(o *outgoing) { o.FieldManager = contract.AggregatorFieldManager }))
			}),
			Mistake: "reports under the aggregator's own field manager: an apply for one node removes those of all others",
		},
		{
			Name: "stream-connect-is-a-report", Scenario: "stream-reporter-killed", Caught: truth,
			Virtual: showing(func(s *contract.HealthStatus) {
				for i := range s.Replicas {
					if s.Replicas[i].Reason == contract.ReplicaConnected {
						s.Replicas[i].Status, s.Replicas[i].Reason = "True", contract.ReplicaHealthy
					}
				}
			}),
			Mistake: "a stream that stands taken for a healthy node, before anything was reported on it",
		},
		{
			Name: "stream-orphan-kept", Scenario: "stream-node-replaced", Caught: truth, Virtual: func() virtual.Options { return showing(keepsReplicas())() },
			Mistake: "replicas that are added and never removed: a node that is gone for good keeps the operator from being ready",
		},
		{
			Name: "stream-silent-node-left-out", Scenario: "stream-reporter-killed", Caught: truth,
			Virtual: showing(func(s *contract.HealthStatus) {
				s.Replicas = slices.DeleteFunc(s.Replicas, func(r contract.ReplicaHealth) bool { return r.Reason == contract.ReplicaDisconnected })
			}),
			Mistake: "replicas made of the streams that there are: a node whose reporter never connected is not missed",
		},
		{
			Name: "stream-ready-although-unknown", Scenario: "stream-reporter-killed", Caught: truth,
			Virtual: showing(func(s *contract.HealthStatus) {
				for _, r := range s.Replicas {
					if r.Status == "Unknown" {
						s.NotReadyNodes = slices.DeleteFunc(s.NotReadyNodes, func(n string) bool { return n == r.NodeName })
						s.ReadyNodes = append(s.ReadyNodes, r.NodeName)
					}
				}
			}),
			Mistake: "not ready only what is known to be broken: who is not heard counts as ready",
		},
		{
			Name: "stream-node-in-both-lists", Scenario: "stream-plugin-fails", Caught: truth,
			Virtual: showing(func(s *contract.HealthStatus) { s.ReadyNodes = append(s.ReadyNodes, s.NotReadyNodes...) }),
			Mistake: "two lists that are kept apart: a node that becomes unhealthy is added to one, and not removed from the other",
		},
	}
}

// showing is an aggregator whose EncryptionHealth is changed on its way out.
func showing(change func(*contract.HealthStatus)) func() virtual.Options {
	return aggregatesBy(func(a *startingAggregator) {
		changeRequests(&a.Host, func(o *outgoing) {
			if o.Verb != "update" || o.Subresource != "status" {
				return
			}
			edit(o, func(shown object) {
				var status contract.HealthStatus
				if json.Unmarshal(text(shown), &status) != nil {
					return
				}
				change(&status)
				clear(shown)
				_ = json.Unmarshal(text(status), &shown) // it was JSON before
			})
		})
	})
}

// keepsReplicas adds what was shown of nodes that are gone.
func keepsReplicas() func(*contract.HealthStatus) {
	known := map[string]bool{}
	return func(s *contract.HealthStatus) {
		gone := maps.Clone(known)
		for _, r := range s.Replicas {
			known[r.NodeName] = true
			delete(gone, r.NodeName)
		}
		for _, node := range slices.Sorted(maps.Keys(gone)) {
			s.Replicas = append(s.Replicas, contract.ReplicaHealth{NodeName: node, Status: "Unknown", Reason: contract.ReplicaDisconnected})
			s.NotReadyNodes = append(s.NotReadyNodes, node)
			s.Conditions[0].Status = "False"
		}
	}
}

// streaming is reporters whose streams are changed.
func streaming(change func(*stream.Options)) func() virtual.Options {
	return looping(func(_ *startingReporter, l *reporter.Loop) {
		if p, ok := l.Publisher.(*stream.Publisher); ok {
			p.Configure(change)
		}
	})
}

// forgetting begins each stream with nothing to send.
func forgetting(o *stream.Options) {
	o.Stood = func(box *stream.Outbox) { *box = stream.Outbox{KeyIDs: box.KeyIDs, Timing: box.Timing} }
}

// observingNothing sends reports that name no configuration.
func observingNothing() func(*stream.Options) {
	return throughStreams(func(s grpc.ClientStream) grpc.ClientStream { return unobserved{s} })
}

type unobserved struct{ grpc.ClientStream }

// SendMsg implements grpc.ClientStream.
func (s unobserved) SendMsg(m any) error {
	if r, ok := m.(*healthv1.ReportRequest); ok {
		r.ObservedGeneration = 0
	}
	return s.ClientStream.SendMsg(m)
}

// probesFromItsStart probes until the first stream stands, too.
func probesFromItsStart(r *startingReporter) error {
	loops := make(chan *reporter.Loop, 1)
	r.changes = append(r.changes, func(l *reporter.Loop) { loops <- l })
	r.besides = append(r.besides, func(ctx context.Context) {
		select {
		case l := <-loops:
			for !heard(ctx, l) {
				for _, result := range l.Prober.All(ctx) {
					l.Observer.Probed(result, result.Entry(r.Timing.Interval))
				}
			}
		case <-ctx.Done():
		}
	})
	return nil
}

// heard reports, after an interval, whether a stream has stood or everything is over.
func heard(ctx context.Context, l *reporter.Loop) bool {
	waiting, cancel := context.WithTimeout(ctx, l.Config.Timing.Interval)
	defer cancel()
	p, ok := l.Publisher.(*stream.Publisher)
	return !ok || p.Ready(waiting) == nil || ctx.Err() != nil
}

// writesItself applies each report before it is sent.
func writesItself(r *startingReporter) error {
	p, err := r.publisher(nil)
	if err != nil {
		return err
	}
	r.changes = append(r.changes, func(l *reporter.Loop) {
		next := l.Publisher
		l.Publisher = apply(func(ctx context.Context, write core.Action) error {
			_ = p.Apply(ctx, write) // to be safe
			return next.Apply(ctx, write)
		})
	})
	return nil
}

// intercepting is aggregators with something around each stream.
func intercepting(around func(s grpc.ServerStream, next func(grpc.ServerStream) error) error) func() virtual.Options {
	return aggregatesBy(func(a *startingAggregator) { a.intercept(around) })
}

func (a *startingAggregator) intercept(around func(s grpc.ServerStream, next func(grpc.ServerStream) error) error) {
	a.configure = append(a.configure, func(c *controller.Config) {
		c.Streaming.Server = append(c.Streaming.Server, grpc.StreamInterceptor(func(srv any, s grpc.ServerStream, _ *grpc.StreamServerInfo, next grpc.StreamHandler) error {
			return around(s, func(s grpc.ServerStream) error { return next(srv, s) })
		}))
	})
}

// within is a stream with another context.
type within struct {
	grpc.ServerStream
	ctx context.Context
}

// Context implements grpc.ServerStream.
func (s within) Context() context.Context { return s.ctx }

// deafToTheEnd goes on with a stream that has ended.
func deafToTheEnd(s grpc.ServerStream, next func(grpc.ServerStream) error) error {
	ctx, end := context.WithCancel(context.WithoutCancel(s.Context()))
	defer end()
	return next(deaf{within{s, ctx}})
}

type deaf struct{ within }

// RecvMsg implements grpc.ServerStream.
func (s deaf) RecvMsg(m any) error {
	err := s.within.RecvMsg(m)
	if err != nil {
		<-s.ctx.Done()
	}
	return err
}

// withoutLead is an aggregator that serves streams which it refuses for a reason about the lead: it accepts and
// writes what they bring, and shows nothing of it.
func withoutLead(refusal string) func() virtual.Options {
	return aggregatesBy(func(a *startingAggregator) {
		var write func(ctx context.Context, r *healthv1.ReportRequest) error
		a.configure = append(a.configure, func(c *controller.Config) { write = writing(c) })
		a.intercept(func(s grpc.ServerStream, next func(grpc.ServerStream) error) error {
			p := newPump(s)
			ctx, end := context.WithCancel(s.Context())
			err := next(pumped{within{s, ctx}, p})
			end()
			if status.Convert(err).Message() != refusal {
				return err
			}
			response := &healthv1.ReportResponse{Content: &healthv1.ReportResponse_Configuration{Configuration: &healthv1.Configuration{}}}
			for {
				if err := s.SendMsg(response); err != nil {
					return err
				}
				var r healthv1.ReportRequest
				if err := p.receive(s.Context(), &r); err != nil {
					return err
				}
				a.besides.Go(func() { _ = write(s.Context(), &r) })
				response.Content = &healthv1.ReportResponse_Acknowledgement{Acknowledgement: &healthv1.Acknowledgement{Sequence: r.GetSequence(), Code: http.StatusOK}}
			}
		})
	})
}

// pump receives the messages of a stream for one receiver after another.
type pump struct {
	messages chan *healthv1.ReportRequest
	over     chan struct{}
	err      error // once it is over
}

// newPump begins to receive. It ends with the stream, which ends with its handler.
func newPump(s grpc.ServerStream) *pump {
	p := &pump{messages: make(chan *healthv1.ReportRequest), over: make(chan struct{})}
	go func() {
		defer close(p.over)
		for {
			r := &healthv1.ReportRequest{}
			if p.err = s.RecvMsg(r); p.err != nil {
				return
			}
			select {
			case p.messages <- r:
			case <-s.Context().Done():
				p.err = s.Context().Err()
				return
			}
		}
	}()
	return p
}

func (p *pump) receive(ctx context.Context, m proto.Message) error {
	select {
	case r := <-p.messages:
		proto.Merge(m, r)
		return nil
	case <-p.over:
		return p.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// pumped is a stream that gets its messages from a pump.
type pumped struct {
	within
	from *pump
}

// RecvMsg implements grpc.ServerStream.
func (s pumped) RecvMsg(m any) error {
	r, ok := m.(proto.Message)
	if !ok {
		return status.Error(codes.Internal, "expected a message")
	}
	return s.from.receive(s.ctx, r)
}

// writing writes the report of the client of a stream.
func writing(c *controller.Config) func(ctx context.Context, r *healthv1.ReportRequest) error {
	rest := restclient.CopyConfig(c.REST)
	rest.Dial = c.Host.DialFunc
	rest.Wrap(c.Host.Wrap)
	began, operator, form := c.Host.Clock().Now(), publish.Operator(c.Operator.Name), c.Streaming.Form
	return func(ctx context.Context, r *healthv1.ReportRequest) error {
		p, _ := peer.FromContext(ctx)
		node := strings.TrimPrefix(p.AuthInfo.(credentials.TLSInfo).State.PeerCertificates[0].Subject.CommonName, contract.ReporterIdentityPrefix)
		report, last, err := healthproto.Report(node, r.GetPlugins())
		if err != nil {
			return err
		}
		transition := publish.TransitionAt(began)
		body, _, err := publish.Body(operator, form, core.Action{Report: report, LastKEKID: last}, &transition)
		if err != nil {
			return err
		}
		applier, err := publish.NewApplier(rest, operator)
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(ctx, r.GetTimeout().AsDuration())
		defer cancel()
		return applier.Apply(ctx, contract.FieldManager(node), body)
	}
}

// knownAs is a stream whose client has another certificate, as if it were verified.
func knownAs(s grpc.ServerStream, change func(shown x509.Certificate) x509.Certificate) grpc.ServerStream {
	p, ok := peer.FromContext(s.Context())
	if !ok {
		return s
	}
	info, ok := p.AuthInfo.(credentials.TLSInfo)
	if !ok || len(info.State.PeerCertificates) == 0 {
		return s
	}
	leaf := change(*info.State.PeerCertificates[0])
	info.State.VerifiedChains = [][]*x509.Certificate{{&leaf}}
	other := &peer.Peer{Addr: p.Addr, LocalAddr: p.LocalAddr, AuthInfo: info}
	return within{s, peer.NewContext(s.Context(), other)}
}

// believingClaims takes a client for the node that it calls its own.
func believingClaims(s grpc.ServerStream, next func(grpc.ServerStream) error) error {
	claims := metadata.ValueFromIncomingContext(s.Context(), scenario.StreamNode)
	if len(claims) == 0 {
		return next(s)
	}
	return next(knownAs(s, func(shown x509.Certificate) x509.Certificate {
		shown.Subject.CommonName = contract.ReporterIdentity(claims[0])
		return shown
	}))
}

// anyAuthority demands certificates and verifies none.
func anyAuthority(a *startingAggregator) {
	a.configure = append(a.configure, func(c *controller.Config) {
		good := c.Streaming.TLS.GetConfigForClient
		c.Streaming.TLS.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			config, err := good(hello)
			if err != nil {
				return nil, err
			}
			config.ClientAuth = tls.RequireAnyClientCert
			return config, nil
		}
	})
	a.intercept(func(s grpc.ServerStream, next func(grpc.ServerStream) error) error {
		return next(knownAs(s, func(shown x509.Certificate) x509.Certificate { return shown }))
	})
}

// relayingUntilWritten tries an apply of a report again, after it was given up, until it is written.
func relayingUntilWritten(a *startingAggregator) {
	wrapRequests(&a.Host, func(next http.RoundTripper) roundTrip {
		return func(r *http.Request) (*http.Response, error) {
			answer, err := next.RoundTrip(r)
			if err == nil || r.Method != http.MethodPatch || r.URL.Query().Get("fieldManager") == contract.AggregatorFieldManager || r.GetBody == nil {
				return answer, err
			}
			a.besides.Go(func() {
				_ = wait.PollUntilContextCancel(a.ctx, reconcile.WriteRetryMin, false, func(ctx context.Context) (bool, error) {
					again := r.Clone(ctx)
					body, err := r.GetBody()
					if err != nil {
						return false, err
					}
					again.Body = body
					answer, err := next.RoundTrip(again)
					if err != nil {
						return false, nil
					}
					return true, answer.Body.Close()
				})
			})
			return answer, err
		}
	})
}
