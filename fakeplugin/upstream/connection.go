package upstream

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	kmsapi "k8s.io/kms/apis/v2"

	"github.com/kmsharness/kmsharness/fakeplugin/server"
)

// dialTimeout bounds a connect to a local socket, which takes long only if the backlog of a plugin that stands still is full.
const dialTimeout = time.Second

// authority is what Kubernetes' clients send for a unix socket.
const authority = "localhost"

// connection is one connection to the plugin. Once it has ended there is no other in its place.
type connection struct {
	net.Conn
	client *grpc.ClientConn
	plugin kmsapi.KeyManagementServiceClient
	end    func()
	once   sync.Once
	taken  atomic.Bool
	ending atomic.Value // an ending, from the moment that it is known: the first of the two ends the other side too
}

// ending is the side that ended a connection.
type ending string

const (
	byPlugin ending = "plugin"
	byClient ending = "client"
)

// bound is the key of a context's connection.
type bound struct{}

// Connect implements server.Upstream.
func (p *Plugin) Connect(ended func()) (server.Connection, error) {
	ctx, cancel := context.WithTimeout(context.Background(), dialTimeout)
	defer cancel()
	raw, err := p.at.Dial(ctx, p.host)
	if err != nil {
		return nil, err
	}
	c := &connection{Conn: raw, end: ended}
	c.client, err = grpc.NewClient("passthrough:///"+authority, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithAuthority(authority),
		grpc.WithContextDialer(c.dial), grpc.WithDisableRetry(), grpc.WithDisableServiceConfig(), grpc.WithIdleTimeout(0))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("connect to the plugin at %s: %w", p.at, err), raw.Close())
	}
	c.plugin = kmsapi.NewKeyManagementServiceClient(c.client)
	c.client.Connect()
	return transport{c}, nil
}

// dial gives gRPC the connection that there is.
func (c *connection) dial(context.Context, string) (net.Conn, error) {
	if c.taken.Swap(true) {
		c.endedBy(byPlugin)
		return nil, net.ErrClosed
	}
	return c, nil
}

func (c *connection) endedBy(e ending) { c.ending.CompareAndSwap(nil, e) }

// broken reports whether the plugin ended the connection, or takes no further calls.
func (c *connection) broken() bool { return c.ending.Load() == byPlugin }

// Close implements net.Conn. gRPC calls it when the plugin has ended the connection, and the calls on it with it.
func (c *connection) Close() (err error) {
	c.endedBy(byPlugin)
	c.once.Do(func() {
		err = c.Conn.Close()
		c.end()
	})
	return err
}

// transport is a connection as the server uses it.
type transport struct{ *connection }

// Bind implements server.Connection.
func (t transport) Bind(ctx context.Context) context.Context {
	return context.WithValue(ctx, bound{}, t.connection)
}

// Close implements server.Connection.
func (t transport) Close() error {
	t.endedBy(byClient)
	return errors.Join(t.client.Close(), t.connection.Close())
}
