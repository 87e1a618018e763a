package plugin

import (
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	kmsapi "k8s.io/kms/apis/v2"

	"github.com/kmsharness/kmsharness/internal/host"
)

// authority is what kube-apiserver sends as :authority on a unix socket.
const authority = "localhost"

// Dial opens a further connection as kube-apiserver does: insecure, :authority localhost, calls wait until the connection is ready. Options come
// on top. The caller closes it. Dial itself does not connect.
func (c *client) Dial(options ...grpc.DialOption) (*grpc.ClientConn, error) {
	options = append([]grpc.DialOption{
		grpc.WithAuthority(authority),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.WaitForReady(true)),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return c.at.Dial(ctx, host.Host{}) }),
		grpc.WithUnaryInterceptor(c.traffic.intercept),
	}, options...)
	conn, err := grpc.NewClient("passthrough:///kms", options...)
	if err != nil {
		return nil, fmt.Errorf("dial %s: %w", c.at, err)
	}
	return conn, nil
}

// Raw calls a method with bytes instead of a message, and returns the bytes of the answer. The method is a full name of package kmsapi, or any
// other. Options come on top. The caller bounds ctx.
func (c *client) Raw(ctx context.Context, method string, request []byte, options ...grpc.CallOption) ([]byte, error) {
	var response []byte
	err := c.conn.Invoke(ctx, method, &request, &response, append(options, grpc.ForceCodecV2(rawCodec{}))...)
	return response, err
}

// rawCodec passes bytes through.
type rawCodec struct{}

var _ encoding.CodecV2 = rawCodec{}

func (rawCodec) Name() string { return "proto" }

func (rawCodec) Marshal(v any) (mem.BufferSlice, error) {
	b, ok := v.(*[]byte)
	if !ok {
		return nil, fmt.Errorf("marshal %T: expected bytes", v)
	}
	return mem.BufferSlice{mem.SliceBuffer(*b)}, nil
}

func (rawCodec) Unmarshal(data mem.BufferSlice, v any) error {
	b, ok := v.(*[]byte)
	if !ok {
		return fmt.Errorf("unmarshal %T: expected bytes", v)
	}
	*b = data.Materialize()
	return nil
}

// traffic remembers what the checks about secrets search for.
type traffic struct {
	mu         sync.Mutex
	plaintexts [][]byte
	errors     []string    // texts of errors, and of healthz other than ok
	late       atomic.Bool // a time passed in the current check
}

// maxRemembered bounds the plaintexts and the error texts that are kept, each.
const maxRemembered = 4096

func (t *traffic) intercept(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	err := invoke(ctx, method, req, reply, cc, opts...)
	if late(err) {
		t.late.Store(true)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if e, ok := req.(*kmsapi.EncryptRequest); ok && len(e.Plaintext) >= SeedBytes && len(t.plaintexts) < maxRemembered {
		t.plaintexts = append(t.plaintexts, e.Plaintext)
	}
	if len(t.errors) < maxRemembered {
		if err != nil {
			t.errors = append(t.errors, status.Convert(err).Message())
		} else if r, ok := reply.(*kmsapi.StatusResponse); ok && r.Healthz != "ok" {
			t.errors = append(t.errors, r.Healthz)
		}
	}
	return err
}

// seen returns the plaintexts of at least SeedBytes that were sent, and the texts of the errors and of healthz that came back.
func (t *traffic) seen() (plaintexts [][]byte, errors []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([][]byte(nil), t.plaintexts...), append([]string(nil), t.errors...)
}
