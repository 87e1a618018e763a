package plugin

import (
	"context"
	"fmt"

	"golang.org/x/net/http2"

	"github.com/kmsharness/kmsharness/conformance"
)

func ping() Check {
	return Check{
		Check: conformance.Check{
			ID: "KMS2-TRANSPORT-PING", Profile: conformance.Extended,
			Title:       "pings are answered",
			Rule:        "The plugin acknowledges an HTTP/2 PING.",
			Source:      "RFC 9113, 6.7: a PING without the flag ACK must be answered with one",
			Consequence: "kube-apiserver's gRPC client cannot estimate its window; one with keepalive takes the connection for dead and drops its calls.",
		},
		After: []string{SecondConnection},
		Run: func(ctx context.Context, p *Plugin) error {
			f, err := dialFrames(ctx, p)
			if err != nil {
				return err
			}
			defer f.end()
			if err := f.ping([8]byte(p.Bytes(8))); err != nil {
				return found("an HTTP/2 PING", err, "its acknowledgement")
			}
			return nil
		},
	}
}

// ping sends a PING and waits for its acknowledgement.
func (f *frames) ping(data [8]byte) error {
	if err := f.framer.WritePing(false, data); err != nil {
		return err
	}
	return f.await(func(frame http2.Frame) bool {
		ack, ok := frame.(*http2.PingFrame)
		return ok && ack.IsAck() && ack.Data == data
	})
}

// pingedCalls is how many calls with a ping each are made.
const pingedCalls = 20

func pingsWithCalls() Check {
	return Check{
		Check: conformance.Check{
			ID: "KMS2-TRANSPORT-PINGS-WITH-CALLS", Profile: conformance.Extended,
			Title:       "a ping with each call is tolerated",
			Rule:        "The plugin does not close a connection because of one PING for each call.",
			Source:      "google.golang.org/grpc/internal/transport/bdp_estimator.go: kube-apiserver's client sends a PING when data arrives; gRFC A8: pings count as abuse only without data",
			Consequence: "The connection closes with GOAWAY too_many_pings, and kube-apiserver's calls on it fail.",
		},
		After: []string{"KMS2-TRANSPORT-PING"},
		Run: func(ctx context.Context, p *Plugin) error {
			f, err := dialFrames(ctx, p)
			if err != nil {
				return err
			}
			defer f.end()
			for i := range pingedCalls {
				id, err := f.status()
				if err == nil {
					err = f.await(ended(id))
				}
				if err == nil {
					err = f.ping([8]byte(p.Bytes(8)))
				}
				if err != nil {
					return found(fmt.Sprintf("Status and a PING, %d times on a connection", i+1), err, "an answer and the acknowledgement")
				}
				if err := f.extend(p); err != nil {
					return err
				}
			}
			return nil
		},
	}
}
