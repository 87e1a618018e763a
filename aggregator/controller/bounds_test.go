package controller

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/test/bufconn"

	healthv1 "github.com/kmsharness/kmsharness/contract/proto/kmsharness/health/v1"
)

// memory is a replica with connections in memory, whose clock is that of the test.
type memory struct {
	*replica
	listener *bufconn.Listener
}

func inMemory(t *testing.T, test func(m memory)) {
	synctest.Test(t, func(t *testing.T) {
		listener := bufconn.Listen(1 << 16)
		m := memory{newReplicaOn(t, newAuthority(t), listener, nil), listener}
		m.lead(true)
		test(m)
	})
}

// dial opens a connection without a stream.
func (m memory) dial(options ...grpc.DialOption) *grpc.ClientConn {
	m.Helper()
	config := m.authority.client(m.authority.reporter("cp-1"))
	conn, err := grpc.NewClient("passthrough:///memory", append(options, grpc.WithTransportCredentials(credentials.NewTLS(config)), grpc.WithDisableServiceConfig(),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return m.listener.DialContext(ctx) }))...)
	must(m, err)
	m.Cleanup(func() { must(m, conn.Close()) })
	conn.Connect()
	for conn.GetState() != connectivity.Ready {
		if !conn.WaitForStateChange(m.Context(), conn.GetState()) {
			m.Fatal("no connection")
		}
	}
	return conn
}

// lasts is how long a connection lasts from now on, at most a limit.
func lasts(conn *grpc.ClientConn, limit time.Duration) time.Duration {
	began := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	conn.WaitForStateChange(ctx, connectivity.Ready)
	return time.Since(began)
}

// S1-10: a connection without a stream is closed, also for a client with the certificate of a reporter.
func TestIdleConnectionsEnd(t *testing.T) {
	inMemory(t, func(m memory) {
		if got := lasts(m.dial(), time.Hour); got != idleTimeout {
			m.Errorf("a connection without a stream lasts %v, want %v", got, idleTimeout)
		}
	})
	inMemory(t, func(m memory) { // the same after a stream
		conn := m.dial()
		ctx, cancel := context.WithCancel(m.Context())
		s, err := healthv1.NewHealthServiceClient(conn).Report(ctx)
		must(m, err)
		if _, err := s.Recv(); err != nil {
			m.Fatal(err)
		}
		if got := lasts(conn, 4*idleTimeout); got != 4*idleTimeout {
			m.Errorf("a connection with a stream ends after %v", got)
		}
		cancel()
		if got := lasts(conn, time.Hour); got != idleTimeout {
			m.Errorf("a connection whose stream has ended lasts %v, want %v", got, idleTimeout)
		}
	})
}

// A connection on which no TLS session, or no HTTP/2, comes about is closed.
func TestHandshakesEnd(t *testing.T) {
	for name, shake := range map[string]func(m memory, conn net.Conn) net.Conn{
		"no TLS": func(_ memory, conn net.Conn) net.Conn { return conn },
		"no HTTP/2": func(m memory, conn net.Conn) net.Conn {
			config := m.authority.client(m.authority.reporter("cp-1"))
			config.NextProtos = []string{"h2"}
			secure := tls.Client(conn, config)
			must(m, secure.Handshake())
			return secure
		},
	} {
		inMemory(t, func(m memory) {
			conn, err := m.listener.DialContext(m.Context())
			must(m, err)
			defer conn.Close()
			began := time.Now()
			giveUp := time.AfterFunc(time.Hour, func() { _ = conn.Close() })
			defer giveUp.Stop()
			_, _ = io.Copy(io.Discard, shake(m, conn))
			if got := time.Since(began); got != handshakeTimeout {
				m.Errorf("%s: the connection lasts %v, want %v", name, got, handshakeTimeout)
			}
		})
	}
}

// A client that pings although the aggregator does is disconnected.
func TestPingsAreBounded(t *testing.T) {
	inMemory(t, func(m memory) {
		raw, err := m.listener.DialContext(m.Context())
		must(m, err)
		config := m.authority.client(m.authority.reporter("cp-1"))
		config.NextProtos = []string{"h2"}
		conn := tls.Client(raw, config)
		defer conn.Close()
		_, err = conn.Write([]byte(http2.ClientPreface))
		must(m, err)
		framer := http2.NewFramer(conn, conn)
		must(m, framer.WriteSettings())
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for pings := 1; ; pings++ {
			<-tick.C
			must(m, framer.WritePing(false, [8]byte{byte(pings)}))
			for {
				frame, err := framer.ReadFrame()
				if err != nil {
					m.Fatalf("after %d pings: %v", pings, err)
				}
				if away, ok := frame.(*http2.GoAwayFrame); ok {
					if away.ErrCode != http2.ErrCodeEnhanceYourCalm || pings > 10 {
						m.Errorf("after %d pings: %v", pings, away)
					}
					return
				}
				if ping, ok := frame.(*http2.PingFrame); ok && ping.IsAck() {
					break
				}
			}
		}
	})
}

// A client that sends large headers is refused.
func TestHeadersAreBounded(t *testing.T) {
	inMemory(t, func(m memory) {
		ctx := metadata.AppendToOutgoingContext(m.Context(), "padding", strings.Repeat("x", maxHeaderBytes))
		s, err := healthv1.NewHealthServiceClient(m.dial()).Report(ctx)
		if err == nil {
			_, err = s.Recv()
		}
		if err == nil {
			m.Error("a stream stands that began with large headers")
		}
	})
}
