package probe

import (
	"context"
	"fmt"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/kmsharness/kmsharness/internal/host"
)

const (
	// maxResponse bounds what a plugin may send: room for a healthz text of 1 MiB, which is to be reported as the
	// unhealthy answer that it is. Anything bigger becomes ResourceExhausted.
	maxResponse = 4 << 20

	// maxHeaders bounds what a plugin may send beside it, where gRPC reads 16 MiB by default. The headers of a Status have some hundred bytes.
	maxHeaders = 16 << 10

	// bufferSize of a connection. gRPC's default of 32 KiB each way is for streams; a StatusResponse has some
	// hundred bytes.
	bufferSize = 4 << 10

	// closeGrace is how long after the probe's deadline the kernel connection is cut, whatever gRPC still does with
	// it: saying goodbye to a plugin that does not read must not take longer. It is not zero, so that the deadline
	// of the call fires first and a hang reads as DeadlineExceeded, not as a broken connection.
	closeGrace = 100 * time.Millisecond
)

// dial prepares a connection; nothing is sent yet. The call does not wait for a server to be ready, so that a dead
// socket fails at once with the kernel's reason (connection refused, no such file) and only a hang meets the deadline.
func dial(ctx context.Context, h host.Host, socket string) (*grpc.ClientConn, error) {
	conn, err := grpc.NewClient("passthrough:///plugin", // not the path: gRPC would read it as a URL
		grpc.WithContextDialer(func(dialCtx context.Context, _ string) (net.Conn, error) { return dialUnix(dialCtx, ctx, h, socket) }),
		grpc.WithTransportCredentials(insecure.NewCredentials()), // KMS v2: the socket's permissions protect it
		grpc.WithAuthority("localhost"), // KMS v2: what the API server sends
		grpc.WithDisableServiceConfig(),
		grpc.WithDisableRetry(),
		grpc.WithReadBufferSize(bufferSize),
		grpc.WithWriteBufferSize(bufferSize),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxResponse)),
		grpc.WithMaxHeaderListSize(maxHeaders),
	)
	if err != nil {
		return nil, fmt.Errorf("prepare a connection to %s: %w", socket, err)
	}
	return conn, nil
}

// dialUnix connects and gives the connection the deadline of the probe.
func dialUnix(dialCtx, probe context.Context, h host.Host, socket string) (net.Conn, error) {
	conn, err := h.Dial(dialCtx, "unix", socket)
	if err != nil {
		return nil, err
	}
	if deadline, ok := probe.Deadline(); ok {
		if err := conn.SetDeadline(deadline.Add(closeGrace)); err != nil {
			conn.Close()
			return nil, fmt.Errorf("set the deadline of %s: %w", socket, err)
		}
	}
	return conn, nil
}
