package netfault

import (
	"context"
	"net"
	"time"

	"github.com/kmsharness/kmsharness/internal/host"
)

// upstreamTimeout bounds a dial on the loopback interface, which answers at once unless the upstream's backlog is full.
const upstreamTimeout = 10 * time.Second

// Link is a TCP connection path from a port of its own to one upstream.
type Link struct {
	host     host.Host
	control  *control
	server   *server
	upstream string
}

// NewLink opens a link in mode OK on a host, from a free port of 127.0.0.1 to upstream (host:port). Nothing needs to listen there yet. The
// owner must Close it.
func NewLink(h host.Host, name, upstream string) (*Link, error) {
	return NewLinkAt(h, name, "127.0.0.1:0", upstream)
}

// NewLinkAt is NewLink with an address (host:port) to listen at, for clients that are not on this machine's loopback.
func NewLinkAt(h host.Host, name, address, upstream string) (*Link, error) {
	l := &Link{host: h, control: newControl(name), upstream: upstream}
	s, err := listen(h, name, address, l.handle)
	if err != nil {
		return nil, err
	}
	l.server = s
	return l, nil
}

// Addr is where clients connect to (host:port); it never changes.
func (l *Link) Addr() string { return l.server.addr() }

// Set puts a fault in force, for connections that exist and for new ones, before it returns. It does not wait for peers. Fault{} heals
// the link.
func (l *Link) Set(f Fault) error { return l.control.set(f) }

// Close resets all connections and returns when every goroutine has ended. It is safe to call twice.
func (l *Link) Close() error { return l.server.end(l.control.close) }

func (l *Link) handle(ctx context.Context, client net.Conn) {
	f, err := l.control.established(ctx)
	if err != nil {
		resetConn(client)
		return
	}
	if f.mutes() {
		hold(client, l.control)
		return
	}
	upstream, err := dial(ctx, l.host, l.upstream, upstreamTimeout)
	if err != nil {
		resetConn(client) // a refused upstream refuses the client
		return
	}
	join(client, upstream, l.control)
}

// join carries bytes between two connections, and owns both.
func join(client, upstream net.Conn, c *control) {
	p := newPair(client, upstream, c)
	if !c.admit(p, Fault.admits) {
		p.reset()
		return
	}
	p.run()
}

func dial(ctx context.Context, h host.Host, addr string, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return h.Dial(ctx, "tcp", addr)
}
