package probe

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	kmsapi "k8s.io/kms/apis/v2"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/internal/host"
)

// fake is a plugin whose Status the test decides.
type fake struct {
	kmsapi.UnimplementedKeyManagementServiceServer
	status    func(ctx context.Context) (*kmsapi.StatusResponse, error)
	authority atomic.Value
}

func (f *fake) Status(ctx context.Context, _ *kmsapi.StatusRequest) (*kmsapi.StatusResponse, error) {
	if md, ok := metadata.FromIncomingContext(ctx); ok {
		f.authority.Store(fmt.Sprint(md.Get(":authority")))
	}
	return f.status(ctx)
}

// good is the answer of a healthy plugin.
func good(context.Context) (*kmsapi.StatusResponse, error) {
	return &kmsapi.StatusResponse{Version: "v2", Healthz: "ok", KeyId: "kek-1"}, nil
}

// say answers with a healthz text.
func say(healthz string) func(context.Context) (*kmsapi.StatusResponse, error) {
	return func(context.Context) (*kmsapi.StatusResponse, error) {
		return &kmsapi.StatusResponse{Version: "v2", Healthz: healthz, KeyId: "kek-1"}, nil
	}
}

// fail answers with a gRPC error.
func fail(code codes.Code, text string) func(context.Context) (*kmsapi.StatusResponse, error) {
	return func(context.Context) (*kmsapi.StatusResponse, error) { return nil, status.Error(code, text) }
}

// hangUntil answers when released, and not before, even after the caller has given up.
func hangUntil(release <-chan struct{}) func(context.Context) (*kmsapi.StatusResponse, error) {
	return func(ctx context.Context) (*kmsapi.StatusResponse, error) {
		<-release
		return good(ctx)
	}
}

// slow answers after d.
func slow(d time.Duration) func(context.Context) (*kmsapi.StatusResponse, error) {
	return func(ctx context.Context) (*kmsapi.StatusResponse, error) {
		timer := time.NewTimer(d)
		defer timer.Stop()
		<-timer.C
		return good(ctx)
	}
}

// serve starts f on a socket of its own and returns what probes it.
func serve(t *testing.T, f *fake, opts ...grpc.ServerOption) Plugin {
	t.Helper()
	p := Plugin{KeyID: "2", Socket: filepath.Join(t.TempDir(), "kms-2.sock")}
	serveOn(t, f, p.Socket, opts...)
	return p
}

// serveOn starts f on socket; the returned function stops it (as the end of the test does).
func serveOn(t *testing.T, f *fake, socket string, opts ...grpc.ServerOption) (stop func()) {
	t.Helper()
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(opts...)
	kmsapi.RegisterKeyManagementServiceServer(server, f)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := server.Serve(listener); err != nil {
			t.Errorf("serve: %v", err)
		}
	}()
	stop = func() { server.Stop(); <-done }
	t.Cleanup(stop)
	return stop
}

// one probes p once and returns the entry that the result means.
func one(t *testing.T, p Plugin, timeout time.Duration) contract.Entry {
	t.Helper()
	results := New(host.Host{}, []Plugin{p}, timeout).All(t.Context())
	if len(results) != 1 || results[0].KeyID != p.KeyID || results[0].Started.IsZero() {
		t.Fatalf("results %+v", results)
	}
	return results[0].Entry(time.Second)
}

// rawCodec sends bytes as they are: what no honest protobuf library would encode.
type rawCodec struct{ bytes []byte }

func (rawCodec) Name() string                  { return "proto" }
func (c rawCodec) Marshal(any) ([]byte, error) { return c.bytes, nil }
func (c rawCodec) Unmarshal([]byte, any) error { return nil }
func raw(message string) grpc.ServerOption     { return grpc.ForceServerCodec(rawCodec{[]byte(message)}) }
func field(number byte, text string) string {
	return string([]byte{number<<3 | 2, byte(len(text))}) + text
}
