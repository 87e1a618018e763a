package mutants

import (
	"context"
	"net/http"
	"slices"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/kmsharness/kmsharness/contract"
	healthv1 "github.com/kmsharness/kmsharness/contract/proto/kmsharness/health/v1"
	"github.com/kmsharness/kmsharness/harness/cluster/virtual"
	"github.com/kmsharness/kmsharness/reporter/stream"
)

// configuredReporters are reporters that stream and do not follow the configuration that they are sent.
func configuredReporters() []Mutant {
	return []Mutant{{
		Name: "stream-configuration-read-once", Scenario: "stream-configuration-changes", Caught: []string{"steps[2].expect"},
		Virtual: streaming(throughStreams(func(s grpc.ClientStream) grpc.ClientStream { return &configuredOnce{ClientStream: s} })),
		Mistake: "a reporter that reads its configuration when the stream begins: after a change no node is ready until each stream has broken once",
	}}
}

// configuringAggregators are aggregators that take the configuration of reporters for something else.
func configuringAggregators() []Mutant {
	return []Mutant{
		{
			Name: "stream-generation-of-the-object", Scenario: "stream-configuration-changes", Caught: []string{"steps[6].expect"},
			Virtual: showing(func(s *contract.HealthStatus) {
				for i := range s.Replicas {
					s.Replicas[i].ObservedGeneration = s.ObservedGeneration
				}
				if !slices.ContainsFunc(s.Replicas, func(r contract.ReplicaHealth) bool { return r.Status != "True" }) && len(s.Conditions) > 0 {
					s.ReadyNodes, s.NotReadyNodes = slices.Sorted(slices.Values(append(s.ReadyNodes, s.NotReadyNodes...))), nil
					s.Conditions[0].Status = "True"
				}
			}),
			Mistake: "one generation for all replicas, that of the object: a node whose reporter has not seen the change is ready",
		},
		{
			Name: "stream-other-generations-refused", Scenario: "stream-configuration-changes", Caught: []string{"steps[7].holds", "CADENCE"},
			Virtual: intercepting(func(s grpc.ServerStream, next func(grpc.ServerStream) error) error {
				return next(&sameGeneration{ServerStream: s})
			}),
			Mistake: "a handler of streams that refuses a report of another generation, which is for a controller to judge: until a roll-out is over, nobody knows how the plugins are",
		},
		{
			Name: "stream-statuses-sent", Scenario: "stream-speaks-for-its-node", Caught: []string{"steps[2].parallel[0]"}, Virtual: sendingStatuses(),
			Mistake: "the whole object passed on to reporters, in place of its spec: each learns how the plugins of all others are",
		},
	}
}

// throughStreams is reporters whose streams are wrapped.
func throughStreams(wrap func(grpc.ClientStream) grpc.ClientStream) func(*stream.Options) {
	return func(o *stream.Options) {
		o.Dial = append(o.Dial, grpc.WithStreamInterceptor(func(ctx context.Context, d *grpc.StreamDesc, conn *grpc.ClientConn, method string, next grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
			s, err := next(ctx, d, conn, method, opts...)
			if err != nil {
				return nil, err
			}
			return wrap(s), nil
		}))
	}
}

// configuredOnce receives the first configuration alone.
type configuredOnce struct {
	grpc.ClientStream
	configured bool
}

// RecvMsg implements grpc.ClientStream.
func (s *configuredOnce) RecvMsg(m any) error {
	for {
		if err := s.ClientStream.RecvMsg(m); err != nil {
			return err
		}
		if r, ok := m.(*healthv1.ReportResponse); !ok || r.GetConfiguration() == nil || !s.configured {
			s.configured = true
			return nil
		}
	}
}

// sameGeneration receives the reports of the generation that was sent last alone.
type sameGeneration struct {
	grpc.ServerStream
	sent atomic.Int64
}

// SendMsg implements grpc.ServerStream.
func (s *sameGeneration) SendMsg(m any) error {
	if r, ok := m.(*healthv1.ReportResponse); ok && r.GetConfiguration() != nil {
		s.sent.Store(r.GetConfiguration().GetGeneration())
	}
	return s.ServerStream.SendMsg(m)
}

// RecvMsg implements grpc.ServerStream. It answers at once, as the handler would after the API server.
func (s *sameGeneration) RecvMsg(m any) error {
	for {
		if err := s.ServerStream.RecvMsg(m); err != nil {
			return err
		}
		r, ok := m.(*healthv1.ReportRequest)
		if !ok || r.GetObservedGeneration() == s.sent.Load() {
			return nil
		}
		refusal := &healthv1.Acknowledgement{Sequence: r.GetSequence(), Code: http.StatusConflict, Message: "another generation"}
		if err := s.ServerStream.SendMsg(&healthv1.ReportResponse{Content: &healthv1.ReportResponse_Acknowledgement{Acknowledgement: refusal}}); err != nil {
			return err
		}
	}
}

// statusField is one that a reporter does not know.
const statusField protowire.Number = 15

// sendingStatuses adds what was shown last to each configuration.
func sendingStatuses() func() virtual.Options {
	return aggregatesBy(func(a *startingAggregator) {
		var shown atomic.Value
		changeRequests(&a.Host, func(o *outgoing) {
			if o.Verb == "update" && o.Subresource == "status" {
				shown.Store(string(o.Body))
			}
		})
		a.intercept(func(s grpc.ServerStream, next func(grpc.ServerStream) error) error { return next(talkative{s, &shown}) })
	})
}

type talkative struct {
	grpc.ServerStream
	shown *atomic.Value
}

// SendMsg implements grpc.ServerStream.
func (s talkative) SendMsg(m any) error {
	if r, ok := m.(*healthv1.ReportResponse); ok && r.GetConfiguration() != nil {
		text, _ := s.shown.Load().(string)
		r.GetConfiguration().ProtoReflect().SetUnknown(protowire.AppendString(protowire.AppendTag(nil, statusField, protowire.BytesType), text))
	}
	return s.ServerStream.SendMsg(m)
}
