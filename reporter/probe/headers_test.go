package probe

import (
	"bytes"
	"context"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	kmsapi "k8s.io/kms/apis/v2"

	"github.com/kmsharness/kmsharness/contract"
)

// headersOf answers with a header of so many bytes.
func headersOf(size int) func(context.Context) (*kmsapi.StatusResponse, error) {
	return func(ctx context.Context) (*kmsapi.StatusResponse, error) {
		if err := grpc.SetHeader(ctx, metadata.Pairs("x-plugin", strings.Repeat("h", size))); err != nil {
			return nil, err
		}
		return good(ctx)
	}
}

func TestPluginIsToldTheLimitOfHeaders(t *testing.T) {
	if e := one(t, serve(t, &fake{status: headersOf(maxHeaders / 2)}), ample); e.Status != contract.StatusHealthy {
		t.Errorf("headers of %d bytes: %s %q", maxHeaders/2, e.Status, e.Detail)
	}
	if e := one(t, serve(t, &fake{status: headersOf(2 * maxHeaders)}), ample); e.Status != contract.StatusError {
		t.Errorf("headers of %d bytes: %s %q, expected an error", 2*maxHeaders, e.Status, e.Detail)
	}
}

// TestHeadersWithoutEndAreRefused: a plugin that ignores the limit is cut off long before the 16 MiB that gRPC reads by default.
func TestHeadersWithoutEndAreRefused(t *testing.T) {
	const most = 16 << 20
	socket := filepath.Join(t.TempDir(), "kms-2.sock")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	sent := make(chan int, 1)
	go func() { sent <- flood(listener, most) }()
	if e := one(t, Plugin{KeyID: "2", Socket: socket}, ample); e.Status != contract.StatusError {
		t.Errorf("%s %q, expected an error", e.Status, e.Detail)
	}
	// Beside what the reporter reads, the kernel buffers some.
	if n := <-sent; n > 2<<20 {
		t.Errorf("the reporter took %d bytes of headers", n)
	}
}

// flood answers the first call with headers of at most so many bytes, and returns how many it could send.
func flood(listener net.Listener, most int) (sent int) {
	conn, err := listener.Accept()
	if err != nil {
		return 0
	}
	defer conn.Close()
	preface := make([]byte, len(http2.ClientPreface))
	if _, err := conn.Read(preface); err != nil {
		return 0
	}
	framer := http2.NewFramer(conn, conn)
	if framer.WriteSettings() != nil {
		return 0
	}
	for {
		frame, err := framer.ReadFrame()
		if err != nil {
			return 0
		}
		if _, called := frame.(*http2.HeadersFrame); called {
			break
		}
	}
	var block bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	encoder.SetMaxDynamicTableSize(0)
	write := func(text string) error {
		block.Reset()
		return encoder.WriteField(hpack.HeaderField{Name: "x-plugin", Value: text, Sensitive: true})
	}
	if encoder.WriteField(hpack.HeaderField{Name: ":status", Value: "200"}) != nil ||
		framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block.Bytes()}) != nil {
		return 0
	}
	for sent < most {
		if write(strings.Repeat("h", 8<<10)) != nil || framer.WriteContinuation(1, false, block.Bytes()) != nil {
			return sent
		}
		sent += 8 << 10
	}
	return sent
}
