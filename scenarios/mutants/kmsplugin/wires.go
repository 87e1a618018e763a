package kmsplugin

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/net/http2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	kmsapi "k8s.io/kms/apis/v2"

	"github.com/kmsharness/kmsharness/fakeplugin/endpoint"
	"github.com/kmsharness/kmsharness/internal/host"
)

func transportMutants() []Mutant {
	return slices.Concat(connectionMutants(), byteMutants(), protocolMutants())
}

func connectionMutants() []Mutant {
	return []Mutant{
		{Name: "hangs-up", Mistake: "Each connection is accepted and closed at once.", Caught: "KMS2-TRANSPORT-CONNECTS", Fault: "refuse-connections:how=hang-up"},
		{Name: "never-answers", Mistake: "The socket accepts connections, and nobody reads them.", Caught: "KMS2-TRANSPORT-CONNECTS", Fault: "socket-replaced:with=silent"},
		{Name: "speaks-tls", Mistake: "The server requires TLS.", Caught: "KMS2-TRANSPORT-CONNECTS",
			Change: func(r *Reference) {
				r.Options = append(r.Options, grpc.Creds(credentials.NewTLS(&tls.Config{GetCertificate: selfSigned})))
			}},
		{Name: "authority-localhost-refused", Mistake: "A call must have the path of the socket as :authority.", Caught: "KMS2-TRANSPORT-AUTHORITY",
			Also: []string{"KMS2-STATUS-ANSWERS"},
			Change: intercept(func(ctx context.Context, _ any) error {
				if toLocalhost(ctx) {
					return status.Error(codes.PermissionDenied, "wrong :authority")
				}
				return nil
			})},
		{Name: "other-authority-hangs", Mistake: "Calls for another :authority than localhost wait for a host that does not come.", Caught: "KMS2-TRANSPORT-AUTHORITY-OTHER",
			Change: intercept(func(ctx context.Context, _ any) error {
				if !toLocalhost(ctx) {
					<-ctx.Done()
				}
				return nil
			})},
		{Name: "one-connection", Mistake: "A single connection is served at a time.", Caught: "KMS2-TRANSPORT-SECOND-CONNECTION",
			Change: func(r *Reference) { r.accepting(make(slots, 1).take) }},
		{Name: "socket-open-to-all", Mistake: "The plugin opens its socket and the folder to everybody.", Caught: "KMS2-TRANSPORT-SOCKET-PERMISSIONS", Change: opensSocket},
		{Name: "dropped-connection-crashes", Mistake: "A connection that closes in mid-call ends the process.", Caught: "KMS2-TRANSPORT-DROPPED-CONNECTION", Change: crashesInMidCall},
	}
}

func toLocalhost(ctx context.Context) bool {
	return slices.Contains(metadata.ValueFromIncomingContext(ctx, ":authority"), "localhost")
}

func opensSocket(r *Reference) {
	r.Listen = func() (net.Listener, error) {
		l, err := endpoint.Listen(host.Host{}, r.At, 0o777)
		if err != nil {
			return nil, err
		}
		return l, os.Chmod(filepath.Dir(r.At.Address), 0o755)
	}
}

func crashesInMidCall(r *Reference) {
	r.Options = append(r.Options, grpc.StatsHandler(inMidCall{}))
	r.Status.before(func(ctx context.Context, _ *kmsapi.StatusRequest) error {
		calls, ok := ctx.Value(inMidCall{}).(*atomic.Int64)
		if !ok {
			return errors.New("the context has no counter of calls")
		}
		calls.Add(1)
		waitFor(ctx, shortWait)
		if ctx.Err() == nil { // otherwise the call has not ended before its connection
			calls.Add(-1)
		}
		return nil
	})
}

// byteMutants are wrong about what comes before calls.
func byteMutants() []Mutant {
	return []Mutant{
		{Name: "idle-connection-blocks", Mistake: "The loop that accepts connections reads the first byte of each.", Caught: "KMS2-TRANSPORT-IDLE-CONNECTION",
			Change: func(r *Reference) { r.accepting(readFirst(1)) }},
		{Name: "half-preface-blocks", Mistake: "The loop that accepts connections reads the preface of each that has begun to send.", Caught: "KMS2-TRANSPORT-HALF-PREFACE",
			Also: []string{"KMS2-LOAD-CONNECTION-CHURN"}, // connections that are closed in the middle of their preface
			Change: func(r *Reference) {
				listen := r.Listen
				r.Listen = func() (net.Listener, error) {
					l, err := listen()
					if err != nil {
						return nil, err
					}
					return begun(l), nil
				}
				r.accepting(readFirst(len(http2.ClientPreface)))
			}},
		{Name: "half-frame-blocks", Mistake: "One reader reads the frames of all connections, each to its end.", Caught: "KMS2-TRANSPORT-HALF-FRAME",
			Change: func(r *Reference) {
				var one sync.Mutex
				r.accepting(func(c net.Conn) net.Conn { return &frameConn{Conn: c, one: &one} })
			}},
		{Name: "garbage-crashes", Mistake: "Bytes that are no HTTP end the process.", Caught: "KMS2-TRANSPORT-GARBAGE",
			Change: crashAt(func(first []byte) bool { return first[0] >= 0x80 })},
		{Name: "http1-crashes", Mistake: "An HTTP/1.1 request ends the process.", Caught: "KMS2-TRANSPORT-HTTP1",
			Change: crashAt(func(first []byte) bool { return bytes.HasPrefix(first, []byte("GET ")) })},
		{Name: "ping-ignored", Mistake: "Pings are not answered.", Caught: "KMS2-TRANSPORT-PING",
			Change: onPing(func(int) error { return errDropFrame })},
		{Name: "pings-counted", Mistake: "A connection is closed after ten pings, except those of gRPC for Go.", Caught: "KMS2-TRANSPORT-PINGS-WITH-CALLS",
			Change: onPing(func(others int) error {
				if others > 10 {
					return errors.New("too many pings")
				}
				return nil
			})},
	}
}

// crashAt ends the process if the first bytes of a connection match.
func crashAt(match func(first []byte) bool) func(*Reference) {
	return func(r *Reference) {
		r.accepting(func(c net.Conn) net.Conn { return &firstRead{Conn: c, match: match} })
	}
}

// onPing runs f at each ping. others counts those on the connection that gRPC for Go does not send.
func onPing(f func(others int) error) func(*Reference) {
	return func(r *Reference) {
		r.accepting(func(c net.Conn) net.Conn {
			others := 0
			return &frameConn{Conn: c, keep: func(kind http2.FrameType, payload []byte) error {
				if kind != http2.FramePing {
					return nil
				}
				if !bytes.Equal(payload, []byte{2, 4, 16, 16, 9, 14, 7, 7}) {
					others++
				}
				return f(others)
			}}
		})
	}
}

// protocolMutants are wrong about calls, whatever their method.
func protocolMutants() []Mutant {
	return []Mutant{
		{Name: "unknown-method-internal", Mistake: "An unknown method is an internal error.", Caught: "KMS2-TRANSPORT-UNKNOWN-METHOD", Change: refuseUnknown(false)},
		{Name: "unknown-service-internal", Mistake: "An unknown service is an internal error.", Caught: "KMS2-TRANSPORT-UNKNOWN-SERVICE", Change: refuseUnknown(true)},
		{Name: "incomplete-request-blocks", Mistake: "Calls are read one after another.", Caught: "KMS2-TRANSPORT-ABANDONED-REQUEST",
			Change: func(r *Reference) { r.Options = append(r.Options, grpc.StatsHandler(oneByOne(make(chan struct{}, 1)))) }},
		{Name: "status-unknown-fields-refused", Mistake: "A request of Status with an unknown field is refused.", Caught: "KMS2-TRANSPORT-UNKNOWN-FIELDS",
			Change: intercept(func(_ context.Context, q any) error {
				if m, ok := q.(*kmsapi.StatusRequest); ok && len(m.ProtoReflect().GetUnknown()) > 0 {
					return refuse("unknown field")
				}
				return nil
			})},
		{Name: "trace-refused", Mistake: "A call with traceparent is refused.", Caught: "KMS2-TRANSPORT-TRACE-METADATA",
			Change: intercept(func(ctx context.Context, _ any) error {
				if len(metadata.ValueFromIncomingContext(ctx, "traceparent")) > 0 {
					return refuse("unexpected metadata")
				}
				return nil
			})},
		{Name: "large-metadata-crashes", Mistake: "Metadata of more than 16 KiB ends the process.", Caught: "KMS2-TRANSPORT-LARGE-METADATA",
			Change: intercept(func(ctx context.Context, _ any) error {
				md, _ := metadata.FromIncomingContext(ctx)
				for _, values := range md {
					if len(strings.Join(values, "")) > 16<<10 {
						crash()
					}
				}
				return nil
			})},
		{Name: "gzip-broken", Mistake: "Compressed requests are accepted and not decompressed.", Caught: "KMS2-TRANSPORT-COMPRESSED",
			Change: func(*Reference) { encoding.RegisterCompressor(noDecompressor{}) }}, // of this process: the mutant is one of its own
		{Name: "big-request-crashes", Mistake: "A request of more than 64 KiB ends the process.", Caught: "KMS2-TRANSPORT-BIG-REQUEST",
			Change: intercept(func(_ context.Context, q any) error {
				if m, ok := q.(*kmsapi.StatusRequest); ok && proto.Size(m) > 64<<10 {
					crash()
				}
				return nil
			})},
	}
}

// refuseUnknown gives unknown methods of unknown services, or of the plugin's own, the code Unimplemented, and the others another.
func refuseUnknown(known bool) func(*Reference) {
	return func(r *Reference) {
		r.Options = append(r.Options, grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
			method, _ := grpc.MethodFromServerStream(stream)
			if strings.HasPrefix(method, "/"+kmsapi.KeyManagementService_ServiceDesc.ServiceName+"/") == known {
				return status.Error(codes.Unimplemented, "unknown "+method)
			}
			return status.Error(codes.Internal, "no handler")
		}))
	}
}

// intercept runs before each call. An error is the answer.
func intercept(before func(context.Context, any) error) func(*Reference) {
	return func(r *Reference) {
		r.Options = append(r.Options, grpc.UnaryInterceptor(func(ctx context.Context, q any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
			if err := before(ctx, q); err != nil {
				return nil, err
			}
			return handler(ctx, q)
		}))
	}
}

func selfSigned(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"localhost"}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
}

// firstRead ends the process if the first bytes match.
type firstRead struct {
	net.Conn
	match func([]byte) bool
	seen  bool
}

func (c *firstRead) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 && !c.seen && c.match(b[:n]) {
		crash()
	}
	c.seen = c.seen || n > 0
	return n, err
}

// begunListener accepts connections that have sent their first byte.
type begunListener struct {
	net.Listener
	ready  chan net.Conn
	closed chan struct{}
}

// begun waits for the first bytes of connections. It ends when l is closed.
func begun(l net.Listener) net.Listener {
	b := begunListener{l, make(chan net.Conn), make(chan struct{})}
	go func() {
		defer close(b.closed)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { // ends with the connection
				if again := readFirst(1)(c); again != nil {
					select {
					case b.ready <- again:
					case <-b.closed:
						_ = c.Close()
					}
				}
			}()
		}
	}()
	return b
}

func (b begunListener) Accept() (net.Conn, error) {
	select {
	case c := <-b.ready:
		return c, nil
	case <-b.closed:
		return nil, net.ErrClosed
	}
}

// inMidCall ends the process when a connection ends that has calls. Its key in a context has their number.
type inMidCall struct{}

func (inMidCall) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }
func (inMidCall) HandleRPC(context.Context, stats.RPCStats)                       {}

func (inMidCall) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context {
	return context.WithValue(ctx, inMidCall{}, new(atomic.Int64))
}

func (inMidCall) HandleConn(ctx context.Context, s stats.ConnStats) {
	if calls, ok := ctx.Value(inMidCall{}).(*atomic.Int64); ok && calls.Load() > 0 {
		if _, end := s.(*stats.ConnEnd); end {
			crash()
		}
	}
}

// oneByOne lets one call at a time wait for its message.
type oneByOne chan struct{}

func (o oneByOne) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context {
	return context.WithValue(ctx, o, new(sync.Once))
}
func (o oneByOne) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (o oneByOne) HandleConn(context.Context, stats.ConnStats)                       {}

func (o oneByOne) HandleRPC(ctx context.Context, s stats.RPCStats) {
	switch s := s.(type) {
	case *stats.InHeader:
		switch s.FullMethod {
		case kmsapi.KeyManagementService_Status_FullMethodName, kmsapi.KeyManagementService_Encrypt_FullMethodName, kmsapi.KeyManagementService_Decrypt_FullMethodName:
			o <- struct{}{}
		}
	case *stats.InPayload, *stats.End:
		if once, ok := ctx.Value(o).(*sync.Once); ok {
			once.Do(func() { <-o })
		}
	}
}

// noDecompressor claims to be gzip.
type noDecompressor struct{}

func (noDecompressor) Name() string { return "gzip" }

func (noDecompressor) Compress(io.Writer) (io.WriteCloser, error) {
	return nil, errors.New("cannot compress")
}

func (noDecompressor) Decompress(io.Reader) (io.Reader, error) {
	return nil, errors.New("cannot decompress")
}
