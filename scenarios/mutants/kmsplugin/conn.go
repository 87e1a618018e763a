package kmsplugin

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"sync"

	"golang.org/x/net/http2"
)

// listener changes the connections that it accepts. accept returns nil for a connection that it has closed.
type listener struct {
	net.Listener
	accept func(net.Conn) net.Conn
}

func (l listener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if c = l.accept(c); c != nil {
			return c, nil
		}
	}
}

// accepting makes the plugin's connections go through accept, which runs in the loop that accepts them.
func (r *Reference) accepting(accept func(net.Conn) net.Conn) {
	listen := r.Listen
	r.Listen = func() (net.Listener, error) {
		l, err := listen()
		if err != nil {
			return nil, err
		}
		return listener{l, accept}, nil
	}
}

// readFirst reads the first bytes of a connection, which the connection that it returns reads again.
func readFirst(n int) func(net.Conn) net.Conn {
	return func(c net.Conn) net.Conn {
		first := make([]byte, n)
		if _, err := io.ReadFull(c, first); err != nil {
			_ = c.Close()
			return nil
		}
		return replayed{c, io.MultiReader(bytes.NewReader(first), c)}
	}
}

// replayed reads from another place than its connection.
type replayed struct {
	net.Conn
	from io.Reader
}

func (c replayed) Read(b []byte) (int, error) { return c.from.Read(b) }

// onClose is a connection that does something else than to close.
type onClose struct {
	net.Conn
	close func() error
}

func (c onClose) Close() error { return c.close() }

type slots chan struct{}

// take waits for a place, which the connection frees when it closes.
func (s slots) take(c net.Conn) net.Conn {
	s <- struct{}{}
	var once sync.Once
	return onClose{c, func() error {
		once.Do(func() { <-s })
		return c.Close()
	}}
}

// frameConn reads whole frames of HTTP/2.
type frameConn struct {
	net.Conn
	one     sync.Locker // held while a frame is read
	keep    func(kind http2.FrameType, payload []byte) error
	started bool // the preface has been read
	pending []byte
}

// errDropFrame is the answer of frameConn.keep for a frame that the plugin must not see.
var errDropFrame = errors.New("drop the frame")

const frameHeader = 9

func (c *frameConn) Read(b []byte) (int, error) {
	for len(c.pending) == 0 {
		if err := c.frame(); err != nil {
			return 0, err
		}
	}
	n := copy(b, c.pending)
	c.pending = c.pending[n:]
	return n, nil
}

func (c *frameConn) frame() error {
	if !c.started {
		c.started = true
		c.pending = make([]byte, len(http2.ClientPreface))
		_, err := io.ReadFull(c.Conn, c.pending)
		return err
	}
	header := make([]byte, frameHeader)
	if _, err := io.ReadFull(c.Conn, header); err != nil {
		return err
	}
	if c.one != nil {
		c.one.Lock()
		defer c.one.Unlock()
	}
	payload := make([]byte, binary.BigEndian.Uint32(header)>>8)
	if _, err := io.ReadFull(c.Conn, payload); err != nil {
		return err
	}
	if c.keep != nil {
		if err := c.keep(http2.FrameType(header[3]), payload); errors.Is(err, errDropFrame) {
			return nil
		} else if err != nil {
			return err
		}
	}
	c.pending = append(header, payload...)
	return nil
}

// crash ends the process, as a panic or a fatal log does.
func crash() { os.Exit(3) }
