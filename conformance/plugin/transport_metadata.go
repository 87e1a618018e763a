package plugin

import (
	"context"
	"fmt"
	"strings"

	"google.golang.org/grpc/metadata"

	"github.com/kmsharness/kmsharness/conformance"
)

func traceMetadata() Check {
	return Check{
		Check: conformance.Check{
			ID: "KMS2-TRANSPORT-TRACE-METADATA", Profile: conformance.Robustness,
			Title:       "trace metadata is accepted",
			Rule:        "A call with the metadata of a trace (traceparent, tracestate of 512 bytes) is answered.",
			Source:      "gRPC, doc/PROTOCOL-HTTP2.md: Custom-Metadata is arbitrary, servers should accept 8 KiB of it; W3C Trace Context, 3.3.1.5",
			Consequence: "kube-apiserver sends none today. An instrumented client or proxy cannot use the plugin.",
		},
		After: []string{StatusAnswers},
		Run: func(ctx context.Context, p *Plugin) error {
			ctx = metadata.AppendToOutgoingContext(ctx, "traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "tracestate", "vendor="+strings.Repeat("t", 505))
			if _, err := p.Status(ctx); err != nil {
				return found("Status with traceparent and a tracestate of 512 bytes", err, "a response")
			}
			return nil
		},
	}
}

// largeHeader is the size of metadata that servers may refuse.
const largeHeader = 64 << 10

func largeMetadata() Check {
	return Check{
		Check: conformance.Check{
			ID: "KMS2-TRANSPORT-LARGE-METADATA", Profile: conformance.Robustness,
			Title:       "large metadata harms nobody",
			Rule:        "A call with 64 KiB of metadata is answered or refused, and the plugin serves others.",
			Source:      "gRPC, doc/PROTOCOL-HTTP2.md: servers may limit the size of Request-Headers",
			Consequence: "One client with large metadata ends the plugin for kube-apiserver.",
		},
		After: []string{SecondConnection},
		Run: func(ctx context.Context, p *Plugin) error {
			// A server that refuses the headers may close the connection: not the one that the checks share.
			_, _ = statusOnNew(metadata.AppendToOutgoingContext(ctx, "padding", strings.Repeat("m", largeHeader)), p)
			return othersServed(ctx, p, fmt.Sprintf("after a call with %d bytes of metadata", largeHeader))
		},
	}
}
