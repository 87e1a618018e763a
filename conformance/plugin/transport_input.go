package plugin

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"golang.org/x/net/http2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding/gzip" // also registers the compressor
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	kmsapi "k8s.io/kms/apis/v2"

	"github.com/kmsharness/kmsharness/conformance"
)

func garbage() Check {
	return foreign("KMS2-TRANSPORT-GARBAGE", "garbage is refused", "bytes that are not HTTP/2", func(p *Plugin) string {
		b := p.Bytes(1024)
		b[0] = 0xff // what no protocol begins with
		return string(b)
	})
}

func httpRequest() Check {
	return foreign("KMS2-TRANSPORT-HTTP1", "an HTTP/1.1 request is refused", "an HTTP/1.1 request", func(*Plugin) string {
		return "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
	})
}

// foreign is a check of input in another protocol.
func foreign(id, title, what string, bytes func(*Plugin) string) Check {
	return Check{
		Check: conformance.Check{
			ID: id, Profile: conformance.Robustness,
			Title:       title,
			Rule:        "After a connection with " + what + " the plugin serves all others.",
			Source:      "RFC 9113, 3.4: an invalid preface is an error of that connection",
			Consequence: "A probe or a misconfigured client that uses the socket ends the plugin for kube-apiserver.",
		},
		After: []string{SecondConnection},
		Run: func(ctx context.Context, p *Plugin) error {
			return written("a connection with "+what, bytes(p))(ctx, p)
		},
	}
}

func halfPreface() Check {
	return partial("KMS2-TRANSPORT-HALF-PREFACE", "half a preface blocks nobody", "half of the HTTP/2 preface", http2.ClientPreface[:len(http2.ClientPreface)/2])
}

func halfFrame() Check {
	// an empty SETTINGS frame, and the header and the first bytes of a HEADERS frame of 100 bytes
	const settings, headers = "\x00\x00\x00\x04\x00\x00\x00\x00\x00", "\x00\x00\x64\x01\x04\x00\x00\x00\x01\x83\x86"
	return partial("KMS2-TRANSPORT-HALF-FRAME", "half a frame blocks nobody", "half of an HTTP/2 frame", http2.ClientPreface+settings+headers)
}

func partial(id, title, what, bytes string) Check {
	return Check{
		Check: conformance.Check{
			ID: id, Profile: conformance.Robustness,
			Title:       title,
			Rule:        "A connection that stops after " + what + " does not delay others.",
			Source:      "RFC 9113, 3.4 and 4.1: a connection is a stream of its own; " + sourceDocs + ": timeout, by default 3 s, for each call",
			Consequence: "A client that is stopped while it sends, such as a kube-apiserver that is out of CPU, stops all others.",
		},
		After: []string{idle},
		Run:   written("a connection with "+what, bytes),
	}
}

func abandonedRequest() Check {
	return Check{
		Check: conformance.Check{
			ID: "KMS2-TRANSPORT-ABANDONED-REQUEST", Profile: conformance.Robustness,
			Title:       "an incomplete request blocks nobody",
			Rule:        "A call whose request never arrives does not delay others, neither on its connection nor on others.",
			Source:      "RFC 9113, 5: the streams of a connection are independent; " + sourceDocs + ": timeout, by default 3 s, for each call",
			Consequence: "kube-apiserver's calls wait for a request that never comes, and end with DeadlineExceeded.",
		},
		After: []string{SecondConnection},
		Run: func(ctx context.Context, p *Plugin) error {
			f, err := dialFrames(ctx, p)
			if err != nil {
				return err
			}
			defer f.end()
			if _, err := f.headers(kmsapi.KeyManagementService_Encrypt_FullMethodName); err != nil {
				return err
			}
			id, err := f.status()
			if err == nil {
				err = f.await(ended(id))
			}
			if err != nil {
				return found("Status on a connection with an Encrypt whose message does not arrive", err, "an answer")
			}
			return othersServed(ctx, p, "while an Encrypt waits for its message")
		},
	}
}

func unknownMethod() Check {
	return unimplemented("KMS2-TRANSPORT-UNKNOWN-METHOD", "an unknown method is unimplemented", "method", "/"+kmsapi.KeyManagementService_ServiceDesc.ServiceName+"/NoSuchMethod")
}

func unknownService() Check {
	return unimplemented("KMS2-TRANSPORT-UNKNOWN-SERVICE", "an unknown service is unimplemented", "service", "/conformance.NoSuchService/Call")
}

func unimplemented(id, title, what, method string) Check {
	return Check{
		Check: conformance.Check{
			ID: id, Profile: conformance.Robustness,
			Title:       title,
			Rule:        "A call of an unknown " + what + " ends with the code Unimplemented.",
			Source:      "gRPC, doc/statuscodes.md: UNIMPLEMENTED where the server has no such method",
			Consequence: "A client that tries a newer API cannot distinguish a plugin without that API from one that fails.",
		},
		After: []string{StatusAnswers},
		Run: func(ctx context.Context, p *Plugin) error {
			ctx, cancel := context.WithTimeout(ctx, p.timing.Call)
			defer cancel()
			_, err := p.Raw(ctx, method, nil)
			if code := status.Code(err); code != codes.Unimplemented {
				if err == nil {
					return found(method, "a response", "error Unimplemented")
				}
				return found(method, err, "error Unimplemented")
			}
			return nil
		},
	}
}

func unknownFields() Check {
	return Check{
		Check: conformance.Check{
			ID: "KMS2-TRANSPORT-UNKNOWN-FIELDS", Profile: conformance.Extended,
			Title:       "unknown fields are ignored",
			Rule:        "Status answers a request with fields that the plugin does not know.",
			Source:      "protobuf.dev/programming-guides/proto3: unknown fields are well formed, and a parser accepts them; " + sourceProto,
			Consequence: "A kube-apiserver whose API has one more field cannot use the plugin.",
		},
		After: []string{StatusAnswers},
		Run: func(ctx context.Context, p *Plugin) error {
			ctx, cancel := context.WithTimeout(ctx, p.timing.Call)
			defer cancel()
			if _, err := p.Raw(ctx, kmsapi.KeyManagementService_Status_FullMethodName, unknownField(16)); err != nil {
				return found("Status with an unknown field of 16 bytes", err, "a response")
			}
			return nil
		},
	}
}

// unknownField is a message with one field that no KMS v2 message has.
func unknownField(size int) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, 2000, protowire.BytesType), bytes.Repeat([]byte{'x'}, size))
}

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

func compressed() Check {
	return Check{
		Check: conformance.Check{
			ID: "KMS2-TRANSPORT-COMPRESSED", Profile: conformance.Robustness,
			Title:       "compression is served or unimplemented",
			Rule:        "A request that is compressed with gzip is answered, or ends with the code Unimplemented.",
			Source:      "gRPC, doc/compression.md: an algorithm that the server does not support is UNIMPLEMENTED",
			Consequence: "kube-apiserver does not compress. Another client cannot find out that it must not.",
		},
		After: []string{SecondConnection},
		Run: func(ctx context.Context, p *Plugin) error {
			_, err := statusOnNew(ctx, p, grpc.WithDefaultCallOptions(grpc.WaitForReady(true), grpc.UseCompressor(gzip.Name)))
			if err != nil && status.Code(err) != codes.Unimplemented {
				return found("Status, compressed with gzip", err, "a response, or error Unimplemented")
			}
			return nil
		},
	}
}

// bigRequest sizes: below and above what gRPC servers accept by default (4 MiB).
const (
	bigMessage  = 1 << 20
	hugeMessage = 5 << 20
)

func bigRequest() Check {
	return Check{
		Check: conformance.Check{
			ID: "KMS2-TRANSPORT-BIG-REQUEST", Profile: conformance.Robustness,
			Title:       "a big request harms nobody",
			Rule:        "A request of 1 MiB or 5 MiB is answered or refused, and the plugin serves others.",
			Source:      "gRPC: a server limits the size of messages, by default to 4 MiB, and refuses larger ones with RESOURCE_EXHAUSTED",
			Consequence: "One client that sends too much ends the plugin for kube-apiserver.",
		},
		After: []string{SecondConnection},
		Run: func(ctx context.Context, p *Plugin) error {
			for _, size := range []int{bigMessage, hugeMessage} {
				call, cancel := context.WithTimeout(ctx, p.timing.Call)
				_, _ = p.Raw(call, kmsapi.KeyManagementService_Status_FullMethodName, unknownField(size))
				cancel()
				if err := othersServed(ctx, p, fmt.Sprintf("after a Status with %d bytes", size)); err != nil {
					return err
				}
			}
			return nil
		},
	}
}
