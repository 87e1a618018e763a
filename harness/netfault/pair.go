package netfault

import (
	"errors"
	"io"
	"net"
	"slices"
	"sync"
	"time"
)

// pair is one connection through a link: the client's and the one to the upstream.
type pair struct {
	client, upstream net.Conn
	control          *control
	opened           time.Time

	once sync.Once
	dead chan struct{} // closed when both ends are
}

func newPair(client, upstream net.Conn, c *control) *pair {
	return &pair{client: client, upstream: upstream, control: c, opened: time.Now(), dead: make(chan struct{})}
}

// run carries bytes in both directions until both have ended.
func (p *pair) run() {
	defer p.control.forget(p)
	var both sync.WaitGroup
	both.Go(func() { p.carry(Requests, p.client, p.upstream) })
	both.Go(func() { p.carry(Answers, p.upstream, p.client) })
	both.Wait()
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

// chunk is what one read returned.
type chunk struct {
	data []byte
	read time.Time
}

const (
	// chunksInTransit is how many chunks a direction may delay before its sender has to wait.
	chunksInTransit = 1024
	// A connection begins with a small buffer, in bytes, and gets a large one when a read fills it: on most little is said.
	smallBuffer, largeBuffer = 4 << 10, 32 << 10
)

// carry passes the bytes of one direction on, each piece when the control lets it, and then the end of the stream. The other direction may still
// carry bytes.
func (p *pair) carry(d Direction, from, to net.Conn) {
	chunks := make(chan *chunk, chunksInTransit)
	var reading sync.WaitGroup
	defer reading.Wait()
	reading.Go(func() { p.read(from, chunks) })
	for c := range chunks {
		p.pass(d, c, to)
	}
	p.control.pass(piece{direction: d}, p.dead) // on a cut link the end of a stream is lost like everything else
	if half, ok := to.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite() // fails when the peer is gone, and then nobody waits for the end
	}
}

// read reads until the stream ends. It passes an abnormal end on to the other side: otherwise a killed server would look like one that closed its
// connection.
func (p *pair) read(from net.Conn, chunks chan<- *chunk) {
	defer close(chunks)
	for buffer := make([]byte, smallBuffer); ; {
		n, err := from.Read(buffer)
		if n > 0 {
			select {
			case chunks <- &chunk{slices.Clone(buffer[:n]), time.Now()}:
			case <-p.dead:
				return
			}
		}
		if err != nil {
			if !errors.Is(err, io.EOF) {
				p.reset()
			}
			return
		}
		if n == smallBuffer {
			buffer = make([]byte, largeBuffer)
		}
	}
}

// pass passes a chunk on, piece by piece.
func (p *pair) pass(d Direction, c *chunk, to net.Conn) {
	for left := len(c.data); left > 0; left = len(c.data) {
		f, _ := p.control.get()
		n := f.size(left)
		p.control.pass(piece{d, p.opened, c.read, n, left}, p.dead)
		if _, err := to.Write(c.data[:n]); err != nil {
			p.reset()
			return
		}
		c.data = c.data[n:]
	}
}
