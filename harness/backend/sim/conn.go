package sim

import (
	"errors"
	"slices"
	"time"
)

// What becomes of requests, in the words of a client.
var (
	errReset   = errors.New("connection reset by peer")
	errRefused = errors.New("connect: connection refused")
	errLost    = errors.New("http2: client connection lost")
	errTimeout = errors.New("context deadline exceeded")
)

// lostAfter is when a client notices a connection that fell silent: HTTP/2 pings after one second, which may take three.
const lostAfter = 4 * time.Second

// conn is a connection to an API server. It stays with that server for as long as it lives.
type conn struct {
	w           *world
	links       []*link // from the client; they stay the same
	through     *proc   // a load balancer, or the aggregator of a stream, or nil
	client      *proc   // that a server finds to be silent, or nil
	server      *server
	incarnation int  // of the server
	unheard     bool // accepted by somebody who loses what is said
	broken      bool
	heard       time.Time // when it was last well again
	streams     []*stream
	ended       func() // tells the client
}

// stream is a request or a watch under way.
type stream struct {
	c      *conn
	failed func(error) // called when what is awaited will not come
	over   bool
}

func (w *world) connect(c *conn) *conn {
	c.w, c.heard = w, w.k.Now()
	for _, l := range c.links {
		l.conns = append(l.conns, c)
	}
	if c.server != nil {
		c.incarnation = c.server.incarnation
	}
	w.conns = append(w.conns, c)
	if c.silent() {
		c.suspect()
	}
	return c
}

// silent says whether nothing comes back on it.
func (c *conn) silent() bool {
	if c.unheard || c.through != nil && c.through.paused || c.client != nil && c.client.paused || c.server != nil && c.server.paused {
		return true
	}
	return slices.ContainsFunc(c.links, (*link).silent)
}

// suspect gives it some time to be heard again.
func (c *conn) suspect() {
	since := c.w.k.Now()
	c.w.k.After(lostAfter, func() {
		if !c.broken && c.silent() && !c.heard.After(since) {
			c.fail(errLost)
		}
	})
}

// fail ends the connection and all that is under way on it.
func (c *conn) fail(err error) {
	if c.broken {
		return
	}
	c.broken = true
	for _, l := range c.links {
		l.conns = slices.DeleteFunc(l.conns, func(o *conn) bool { return o == c })
	}
	c.w.conns = slices.DeleteFunc(c.w.conns, func(o *conn) bool { return o == c })
	streams := c.streams
	c.streams = nil
	for _, s := range streams {
		s.fail(err)
	}
	if c.ended != nil {
		c.ended()
	}
}

func (c *conn) open(failed func(error)) *stream {
	s := &stream{c: c, failed: failed}
	c.streams = append(c.streams, s)
	return s
}

func (s *stream) fail(err error) {
	if !s.over {
		s.close()
		s.failed(err)
	}
}

func (s *stream) close() {
	s.over = true
	s.c.streams = slices.DeleteFunc(s.c.streams, func(o *stream) bool { return o == s })
}

// toServer brings a message to the server, and toClient one back. What belongs to a connection that has broken is lost.
func (c *conn) toServer(arrive func()) { c.carry(0, smallMessage, arrive) }
func (c *conn) toClient(arrive func()) { c.carry(1, smallMessage, arrive) }

// carry is that for a message of some size.
func (c *conn) carry(direction, bytes int, arrive func()) {
	links := c.links
	if direction == 1 {
		links = slices.Clone(links)
		slices.Reverse(links)
	}
	c.pass(direction, bytes, links, arrive)
}

func (c *conn) pass(direction, bytes int, links []*link, arrive func()) {
	switch {
	case c.broken || c.unheard:
	case len(links) == 0:
		arrive()
	default:
		links[0].sendIn(nil, 0, direction, bytes, func() { c.pass(direction, bytes, links[1:], arrive) })
	}
}

// silenced and healed are told that something on some way changed.
func (w *world) silenced() {
	w.stirred()
	for _, c := range w.conns {
		if c.silent() {
			c.suspect()
		}
	}
}

func (w *world) healed() {
	w.stirred()
	for _, c := range w.conns {
		if !c.silent() {
			c.heard = w.k.Now()
		}
	}
}
