package netfault

import (
	"context"
	"net"
	"time"
)

// upstreamTimeout bounds a dial on the loopback interface, which answers at once unless the upstream's backlog is full.
const upstreamTimeout = 10 * time.Second

// Link is a TCP connection path from a port of its own to one upstream.
type Link struct {
	name     string
	control  *control
	server   *server
	upstream string
}

// NewLink opens a link in mode OK from a free port of 127.0.0.1 to upstream (host:port). Nothing needs to listen there yet. The
// owner must Close it.
func NewLink(name, upstream string) (*Link, error) { return NewLinkAt(name, "127.0.0.1:0", upstream) }

// NewLinkAt is NewLink with an address (host:port) to listen at, for clients that are not on this machine's loopback.
func NewLinkAt(name, address, upstream string) (*Link, error) {
	l := &Link{name: name, control: newControl(name), upstream: upstream}
	s, err := listen(name, address, l.handle)
	if err != nil {
		return nil, err
	}
	l.server = s
	return l, nil
}

func (l *Link) Name() string { return l.name }

// Addr is where clients connect to (host:port); it never changes.
func (l *Link) Addr() string { return l.server.addr() }

// Set puts a fault in force, for connections that exist and for new ones, before it returns. It does not wait for peers. Fault{} heals
// the link.
func (l *Link) Set(f Fault) error { return l.control.set(f) }

func (l *Link) Fault() Fault {
	f, _ := l.control.get()
	return f
}

// Connections is how many connections are established through the link.
func (l *Link) Connections() int { return l.control.connections() }

// Close resets all connections and returns when every goroutine has ended. It is safe to call twice.
func (l *Link) Close() error {
	err := l.server.stop()
	l.control.close()
	l.server.wait()
	return err
}

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
	relay(ctx, client, l.upstream, l.control, upstreamTimeout)
}

// relay connects the client with the upstream until one of them ends it. A refused upstream refuses the client.
func relay(ctx context.Context, client net.Conn, addr string, c *control, timeout time.Duration) {
	upstream, err := dial(ctx, addr, timeout)
	if err != nil {
		resetConn(client)
		return
	}
	join(client, upstream, c)
}

// join carries bytes between two connections, and owns both.
func join(client, upstream net.Conn, c *control) {
	p := newPair(client, upstream, c)
	if !c.admit(p, Fault.admits) {
		p.reset()
		return
	}
	_ = p.run() // a pipeline that cannot be built has reset the connection, which is all that its ends can see
}

func dial(ctx context.Context, addr string, timeout time.Duration) (net.Conn, error) {
	d := net.Dialer{Timeout: timeout}
	return d.DialContext(ctx, "tcp", addr)
}
