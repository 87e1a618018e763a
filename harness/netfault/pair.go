package netfault

import (
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// pair is one connection through a link: the client's and the one to the upstream.
type pair struct {
	client, upstream net.Conn
	control          *control
	opened           time.Time

	once sync.Once
	dead chan struct{}  // closed when both ends are
	open sync.WaitGroup // directions that still carry bytes
}

func newPair(client, upstream net.Conn, c *control) *pair {
	p := &pair{client: client, upstream: upstream, control: c, opened: time.Now(), dead: make(chan struct{})}
	p.open.Add(2)
	return p
}

// run carries bytes in both directions until both have ended. Where it cannot, it resets the connection, which is all that its ends can see.
func (p *pair) run() {
	defer p.control.forget(p)
	if startPipeline(p) != nil {
		p.reset()
		return
	}
	p.open.Wait()
	p.close()
}

func (p *pair) close() {
	p.once.Do(func() {
		_ = p.client.Close() // the connection is over, whatever it says
		_ = p.upstream.Close()
		close(p.dead)
	})
}

// reset ends both connections with RST.
func (p *pair) reset() {
	linger0(p.client)
	linger0(p.upstream)
	p.close()
}

// linger0 makes Close send RST and throw away what was not sent.
func linger0(c net.Conn) {
	if tcp, ok := c.(interface{ SetLinger(int) error }); ok {
		_ = tcp.SetLinger(0) // fails on a closed connection only
	}
}

func resetConn(c net.Conn) {
	linger0(c)
	_ = c.Close()
}

// endpoint is one end of a pair as toxiproxy's pipeline sees it.
type endpoint struct {
	conn net.Conn
	pair *pair
	once sync.Once
}

// Read passes an abnormal end on to the other side: without this a killed server would look like one that said goodbye.
func (e *endpoint) Read(b []byte) (int, error) {
	n, err := e.conn.Read(b)
	if err != nil && !errors.Is(err, io.EOF) {
		e.pair.reset()
	}
	return n, err
}

// Write never fails: toxiproxy's pipeline would stop draining and block its goroutines for ever. The pair ends instead,
// which ends the source.
func (e *endpoint) Write(b []byte) (int, error) {
	if _, err := e.conn.Write(b); err != nil {
		e.pair.reset()
	}
	return len(b), nil
}

// A connection begins with a small buffer, in bytes, and gets a large one when a read fills it: on most little is said.
const smallBuffer, largeBuffer = 4 << 10, 32 << 10

// WriteTo implements io.WriterTo. io.Copy calls it, and ReadFrom, instead of making a large buffer for each direction.
func (e *endpoint) WriteTo(w io.Writer) (int64, error) { return carry(w, e) }

// ReadFrom implements io.ReaderFrom.
func (e *endpoint) ReadFrom(r io.Reader) (int64, error) { return carry(e, r) }

func carry(w io.Writer, r io.Reader) (all int64, err error) {
	for buffer := make([]byte, smallBuffer); ; {
		n, err := r.Read(buffer)
		if n > 0 {
			if _, err := w.Write(buffer[:n]); err != nil {
				return all, err
			}
			all += int64(n)
		}
		if err == io.EOF {
			return all, nil
		}
		if err != nil {
			return all, err
		}
		if n == smallBuffer {
			buffer = make([]byte, largeBuffer)
		}
	}
}

// Close ends one direction. The other may still carry bytes.
func (e *endpoint) Close() error {
	e.once.Do(func() {
		if half, ok := e.conn.(interface{ CloseWrite() error }); ok {
			_ = half.CloseWrite() // fails when the peer is gone, and then there is nobody to tell
		}
		e.pair.open.Done()
	})
	return nil
}

// heldConn is a connection that was accepted and is never answered.
type heldConn struct{ client net.Conn }

func (h *heldConn) reset() { resetConn(h.client) }

// hold reads what a client says and answers nothing, until the client ends the connection or the control does. Reading on
// matters: a peer that reads nothing fills the client's buffers, and would be noticed by that.
func hold(client net.Conn, c *control) {
	h := &heldConn{client}
	if !c.admit(h, Fault.mutes) {
		h.reset()
		return
	}
	defer c.forget(h)
	_, _ = io.Copy(io.Discard, client) // its end is all that matters, however it comes
	_ = client.Close()
}
