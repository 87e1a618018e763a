package controller

import (
	"context"
	"log/slog"
	"net"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/peer"
)

// Bounds of a client's connections (docs/contract.md, "Streaming").
const (
	// A report has 32 plugins with a few texts of a thousand characters each.
	maxReportBytes = 512 << 10
	// A reporter has one stream on a connection. A second one takes its place.
	maxStreams = 4
	// The headers of a stream are a few hundred bytes.
	maxHeaderBytes = 8 << 10
	// handshakeTimeout bounds a connection on which no TLS session and no HTTP/2 comes about.
	handshakeTimeout = 5 * time.Second
	// idleTimeout bounds a connection without a stream. A reporter has one as long as its connection.
	idleTimeout = 10 * time.Second
	// A client need not ping: the aggregator does. One that pings more often than this, or without a stream, is disconnected.
	clientPing = 5 * time.Minute
	// pingAfter and pingTimeout find a reporter that is gone without a word as soon as the aggregator's own client finds an API server that is.
	pingAfter   = time.Second
	pingTimeout = 3 * time.Second
)

// newServer is a server that holds no connection for a client that does not report.
func (s *reportServer) newServer() *grpc.Server {
	return grpc.NewServer(append(slices.Clone(s.c.Streaming.Server), grpc.Creds(loggedTLS{credentials.NewTLS(s.c.Streaming.TLS), s.c.Log}), grpc.WaitForHandlers(true),
		grpc.MaxRecvMsgSize(maxReportBytes), grpc.MaxHeaderListSize(maxHeaderBytes), grpc.MaxConcurrentStreams(maxStreams), grpc.ConnectionTimeout(handshakeTimeout),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: pingAfter, Timeout: pingTimeout, MaxConnectionIdle: idleTimeout}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: clientPing}))...)
}

// loggedTLS is TLS that logs who is refused.
type loggedTLS struct {
	credentials.TransportCredentials
	log *slog.Logger
}

// ServerHandshake implements credentials.TransportCredentials.
func (o loggedTLS) ServerHandshake(conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	secure, info, err := o.TransportCredentials.ServerHandshake(conn)
	if err != nil {
		o.log.Warn("refused a connection for streams", "client", conn.RemoteAddr(), "error", err)
	}
	return secure, info, err
}

// Clone implements credentials.TransportCredentials.
func (o loggedTLS) Clone() credentials.TransportCredentials {
	return loggedTLS{o.TransportCredentials.Clone(), o.log}
}

func addressOf(ctx context.Context) string {
	if p, ok := peer.FromContext(ctx); ok {
		return p.Addr.String()
	}
	return ""
}
