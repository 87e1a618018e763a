package netfault

import (
	"context"
	"net"

	"github.com/kmsharness/kmsharness/internal/host"
)

// Link is a TCP connection path from a port of its own to one upstream.
type Link struct {
	to     *member
	server *server
}

// NewLink opens a link in mode OK on a host, from a free port of 127.0.0.1 to upstream (host:port). Nothing needs to listen there yet. The
// owner must Close it.
func NewLink(h host.Host, name, upstream string) (*Link, error) {
	return NewLinkAt(h, name, "127.0.0.1:0", upstream)
}

// NewLinkAt is NewLink with an address (host:port) to listen at, for clients that are not on this machine's loopback.
func NewLinkAt(h host.Host, name, address, upstream string) (*Link, error) {
	l := &Link{to: newMember(h, name, upstream)}
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
func (l *Link) Set(f Fault) error { return l.to.control.set(f) }

// Close resets all connections and returns when every goroutine has ended. It is safe to call twice.
func (l *Link) Close() error {
	err := l.server.stop()
	l.to.control.close()
	l.server.wait()
	return err
}

func (l *Link) handle(ctx context.Context, client net.Conn) {
	if !l.to.serve(ctx, client) {
		resetConn(client) // a refused upstream refuses the client
	}
}
