package server

import (
	"context"
	"net"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc/peer"
)

// conns are the open connections of the plugin.
type conns struct {
	mu   sync.Mutex
	open map[*conn]struct{}
}

// conn is a connection that can be broken from within a call on it.
type conn struct {
	net.Conn
	all      *conns
	upstream Connection // to the plugin behind the server; nil: there is none
	truncate atomic.Bool
}

// peerAddr leads from a call's context to its connection: gRPC hands out the remote address and nothing else, and
// that of a unix socket's client is empty anyway.
type peerAddr struct {
	net.Addr
	conn *conn
}

func (c *conns) keep(added *conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open[added] = struct{}{}
}

// closeAll breaks every connection, without a goodbye.
func (c *conns) closeAll() {
	c.mu.Lock()
	open := c.open
	c.open = map[*conn]struct{}{}
	c.mu.Unlock()
	for one := range open {
		_ = one.Conn.Close()
	}
}

func (c *conns) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.open)
}

// RemoteAddr implements net.Conn.
func (c *conn) RemoteAddr() net.Addr { return peerAddr{c.Conn.RemoteAddr(), c} }

// Close implements net.Conn.
func (c *conn) Close() error {
	c.all.mu.Lock()
	delete(c.all.open, c)
	c.all.mu.Unlock()
	err := c.Conn.Close()
	if c.upstream != nil {
		_ = c.upstream.Close() // it may have ended already
	}
	return err
}

// Write implements net.Conn. Once truncate is set it sends the first half of b and breaks the connection.
func (c *conn) Write(b []byte) (int, error) {
	if !c.truncate.Load() {
		return c.Conn.Write(b)
	}
	n, err := c.Conn.Write(b[:len(b)/2])
	if err != nil {
		return n, err
	}
	return n, c.Close()
}

// connOf is the connection of a call; nil in a test without one.
func connOf(ctx context.Context) *conn {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return nil
	}
	addr, _ := p.Addr.(peerAddr)
	return addr.conn
}

// listener tracks the connections that it accepts, or hangs up on them.
type listener struct {
	net.Listener
	conns   *conns
	hangUp  *atomic.Bool
	connect func(*conn) error // to the plugin behind the server
}

// Accept implements net.Listener.
func (l listener) Accept() (net.Conn, error) {
	for {
		raw, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if l.hangUp.Load() {
			_ = raw.Close()
			continue
		}
		accepted := &conn{Conn: raw, all: l.conns}
		if err := l.connect(accepted); err != nil {
			_ = raw.Close()
			continue
		}
		l.conns.keep(accepted)
		return accepted, nil
	}
}

// silence accepts on l and never says a word, until the returned function is called.
func silence(l net.Listener) (stop func()) {
	var accepting sync.WaitGroup
	held := &conns{open: map[*conn]struct{}{}}
	accepting.Go(func() {
		for {
			raw, err := l.Accept()
			if err != nil {
				return
			}
			held.keep(&conn{Conn: raw, all: held})
		}
	})
	return func() {
		_ = l.Close()
		accepting.Wait()
		held.closeAll()
	}
}
