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
	kmsapi "k8s.io/kms/apis/v2"
)

func garbage(ctx context.Context, p *Plugin) error {
	b := p.Bytes(1024)
	b[0] = 0xff // what no protocol begins with
	return written("a connection with bytes that are not HTTP/2", string(b))(ctx, p)
}

// halfFrame is an empty SETTINGS frame, and the header and the first bytes of a HEADERS frame of 100 bytes, after the preface.
const halfFrame = http2.ClientPreface + "\x00\x00\x00\x04\x00\x00\x00\x00\x00" + "\x00\x00\x64\x01\x04\x00\x00\x00\x01\x83\x86"

func abandonedRequest(ctx context.Context, p *Plugin, f *frames) error {
	need(f.headers(kmsapi.KeyManagementService_Encrypt_FullMethodName))
	if err := f.call(); err != nil {
		return found("Status on a connection with an Encrypt whose message does not arrive", err, "an answer")
	}
	return othersServed(ctx, p, "while an Encrypt waits for its message")
}

// unimplemented is a check of a call that a plugin does not know.
func unimplemented(method string) JudgeFunc {
	return func(ctx context.Context, p *Plugin) error {
		ctx, cancel := context.WithTimeout(ctx, p.timing.Call)
		defer cancel()
		_, err := p.Raw(ctx, method, nil)
		if err == nil {
			return found(method, "a response", "error Unimplemented")
		}
		if status.Code(err) != codes.Unimplemented {
			return found(method, err, "error Unimplemented")
		}
		return nil
	}
}

func unknownFields(ctx context.Context, p *Plugin) error {
	_, err := rawCall(ctx, p, "Status with an unknown field of 16 bytes", kmsapi.KeyManagementService_Status_FullMethodName, unknownField(16))
	return err
}

// unknownField is a message with one field that no KMS v2 message has.
func unknownField(size int) []byte {
	return bytesField(nil, 2000, bytes.Repeat([]byte{'x'}, size))
}

func traceMetadata(ctx context.Context, p *Plugin) error {
	ctx = metadata.AppendToOutgoingContext(ctx, "traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "tracestate", "vendor="+strings.Repeat("t", 505))
	need(p.answer(ctx, "Status with traceparent and a tracestate of 512 bytes"))
	return nil
}

// largeHeader is the size of metadata that servers may refuse.
const largeHeader = 64 << 10

func largeMetadata(ctx context.Context, p *Plugin) error {
	// A server that refuses the headers may close the connection: not the one that the checks share.
	_, _ = p.statusOnNew(metadata.AppendToOutgoingContext(ctx, "padding", strings.Repeat("m", largeHeader)))
	return othersServed(ctx, p, fmt.Sprintf("after a call with %d bytes of metadata", largeHeader))
}

func compressed(ctx context.Context, p *Plugin) error {
	_, err := p.statusOnNew(ctx, grpc.WithDefaultCallOptions(grpc.WaitForReady(true), grpc.UseCompressor(gzip.Name)))
	if err != nil && status.Code(err) != codes.Unimplemented {
		return found("Status, compressed with gzip", err, "a response, or error Unimplemented")
	}
	return nil
}

// bigRequest sizes: below and above what gRPC servers accept by default (4 MiB).
const (
	bigMessage  = 1 << 20
	hugeMessage = 5 << 20
)

func bigRequest(ctx context.Context, p *Plugin) error {
	for _, size := range []int{bigMessage, hugeMessage} {
		call, cancel := context.WithTimeout(ctx, p.timing.Call)
		_, _ = p.Raw(call, kmsapi.KeyManagementService_Status_FullMethodName, unknownField(size))
		cancel()
		must(othersServed(ctx, p, fmt.Sprintf("after a Status with %d bytes", size)))
	}
	return nil
}
