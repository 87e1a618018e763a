package network

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// pair is both ends of a connection. A connection is two halves, one for each direction, because links are cut and
// slowed by direction.
type pair struct{ client, server *conn }

func (p *pair) between(from, to string) bool {
	return p.client.out.from == from && p.client.out.to == to
}

func (p *pair) of(host string) bool { return p.client.out.from == host || p.client.out.to == host }

func (p *pair) reset() { p.client.reset() }

// half is one direction of a connection: a queue from the writer to the reader. Packets arrive by timers
// (time.AfterFunc, which is virtual in a bubble), each after all that was sent before it, as in TCP.
type half struct {
	from, to string // machines
	id       Hash
	takes    latency

	mu       sync.Mutex
	cond     *sync.Cond
	buf      []byte    // has arrived
	withheld [][]byte  // packets that would have, were the link not stopped, or that wait for those before them
	err      error     // what a read returns at the end
	sent, at time.Time // when the last packet was sent, and arrives
	packet   *[]byte   // is on its way, and takes in what is sent in the same instant
	deadline time.Time
	timer    *time.Timer
	delay    time.Duration
	stopped  bool
	draining bool // what was withheld arrives
	over     bool // its end is withheld, too
}

func newHalf(from, to string, id Hash, takes latency) *half {
	h := &half{from: from, to: to, id: id, takes: takes}
	h.cond = sync.NewCond(&h.mu)
	return h
}

// obey is called when the link changes. Packets that are on their way arrive when they would have: a change of the delay
// is about later ones. When a stopped link resumes, what was withheld arrives in order after one latency, as a sender's
// kernel retransmits.
func (h *half) obey(delay time.Duration, stopped bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.delay = delay
	resumes := h.stopped && !stopped && !h.draining
	h.stopped = stopped
	if resumes {
		h.drainAfter(h.takes.at(h.id, time.Now()))
	}
}

// drainAfter lets the first of what is withheld arrive after a time. The mutex is held.
func (h *half) drainAfter(d time.Duration) {
	h.draining = h.err == nil && (len(h.withheld) > 0 || h.over)
	if h.draining {
		time.AfterFunc(d, h.drain)
	}
}

// drain lets one packet after another arrive, each in an instant of its own. In one instant, a server would handle a
// request and its cancellation in any order, and two runs with the same seed would differ.
func (h *half) drain() {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.stopped:
		h.draining = false
		return
	case len(h.withheld) > 0:
		h.buf, h.withheld = append(h.buf, h.withheld[0]...), h.withheld[1:]
		h.cond.Broadcast()
	case h.err == nil:
		h.end(io.EOF)
	}
	h.drainAfter(instant)
}

// instant is the least time that passes, to order what would otherwise be at the same time.
const instant = time.Nanosecond

// waits reports whether what arrives now is withheld.
func (h *half) waits() bool { return h.stopped || h.draining }

func (h *half) ended() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.err != nil
}

// read blocks on a condition variable: in a bubble only that, channels, timers and WaitGroups let virtual time go on
// (testing/synctest calls it durably blocked). A mutex does not.
func (h *half) read(b []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for {
		switch {
		case errors.Is(h.err, syscall.ECONNRESET), errors.Is(h.err, net.ErrClosed): // what has arrived is lost
			return 0, h.err
		case !h.deadline.IsZero() && !time.Now().Before(h.deadline):
			return 0, os.ErrDeadlineExceeded
		case len(h.buf) > 0:
			n := copy(b, h.buf)
			h.buf = h.buf[n:]
			return n, nil
		case h.err != nil:
			return 0, h.err
		}
		h.cond.Wait()
	}
}

// write never blocks: the buffer is not bounded, so there is no back-pressure. What is written in the same instant joins
// the packet that is on its way, so that the number of writes does not change what the reader sees. What is written to an end that was closed is
// lost, as in TCP, until the writer knows, because its own reads end: gRPC tries again without a pause while writes fail and reads do not, and no time
// would pass.
func (h *half) write(b []byte, known bool) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if errors.Is(h.err, net.ErrClosed) && !known {
		return len(b), nil
	}
	if h.err != nil || h.over {
		return 0, os.NewSyscallError("write", syscall.EPIPE)
	}
	if h.packet != nil && time.Now().Equal(h.sent) {
		*h.packet = append(*h.packet, b...)
		return len(b), nil
	}
	packet := append([]byte(nil), b...)
	h.packet = &packet
	h.arrive(func() {
		if h.packet == &packet {
			h.packet = nil
		}
		if h.waits() {
			h.withheld = append(h.withheld, packet)
		} else {
			h.buf = append(h.buf, packet...)
		}
	})
	return len(b), nil
}

// arrive does something when what is sent now arrives, after all that was sent before. The mutex is held both times.
func (h *half) arrive(do func()) {
	h.sent = time.Now()
	at := h.sent.Add(h.takes.at(h.id, h.sent) + h.delay)
	if !at.After(h.at) {
		at = h.at.Add(instant)
	}
	h.at = at
	time.AfterFunc(at.Sub(h.sent), func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.err == nil {
			do()
			h.cond.Broadcast()
		}
	})
}

// finish ends the direction once all that was sent has arrived.
func (h *half) finish() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.err != nil || h.over {
		return
	}
	h.packet = nil
	h.arrive(func() {
		if h.waits() {
			h.over = true
		} else {
			h.end(io.EOF)
		}
	})
}

// A reset takes effect also after the end of the stream was seen, as an RST does.
func (h *half) abort(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.err == nil || errors.Is(h.err, io.EOF) {
		h.end(err)
	}
}

func (h *half) end(err error) {
	h.err = err
	if h.timer != nil {
		h.timer.Stop()
	}
	h.cond.Broadcast()
}

func (h *half) setDeadline(t time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.deadline = t
	if h.timer != nil {
		h.timer.Stop()
		h.timer = nil
	}
	if !t.IsZero() && h.err == nil {
		h.timer = time.AfterFunc(time.Until(t), func() {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.cond.Broadcast()
		})
	}
	h.cond.Broadcast()
}

type conn struct {
	in, out       *half
	local, remote addr
	closed        atomic.Bool
	abrupt        atomic.Bool // Close resets
}

var _ net.Conn = (*conn)(nil)

func (c *conn) Read(b []byte) (int, error) {
	n, err := c.in.read(b)
	return n, c.failed("read", err)
}

// Write implements net.Conn. It does not wait.
func (c *conn) Write(b []byte) (int, error) {
	if c.closed.Load() {
		return 0, c.failed("write", net.ErrClosed)
	}
	n, err := c.out.write(b, c.in.ended())
	return n, c.failed("write", err)
}

func (c *conn) failed(op string, err error) error {
	if err == nil || err == io.EOF {
		return err
	}
	return &net.OpError{Op: op, Net: c.local.network, Source: c.local, Addr: c.remote, Err: err}
}

// Close implements net.Conn. What was written still arrives, and the other end then reads EOF. With SO_LINGER 0 the
// other end gets ECONNRESET.
func (c *conn) Close() error {
	switch {
	case c.closed.Swap(true):
	case c.abrupt.Load():
		c.out.abort(os.NewSyscallError("read", syscall.ECONNRESET))
		c.in.abort(net.ErrClosed)
	default:
		c.out.finish()
		c.in.abort(net.ErrClosed)
	}
	return nil
}

// CloseWrite is net.TCPConn's: the other end reads to the end, and may still write.
func (c *conn) CloseWrite() error {
	c.out.finish()
	return nil
}

// SetLinger is net.TCPConn's: with 0 seconds Close resets the connection.
func (c *conn) SetLinger(seconds int) error {
	c.abrupt.Store(seconds == 0)
	return nil
}

// reset ends both directions at once, for both ends, as the end of a process without FIN or a middlebox does.
func (c *conn) reset() {
	err := os.NewSyscallError("read", syscall.ECONNRESET)
	c.in.abort(err)
	c.out.abort(err)
}

func (c *conn) LocalAddr() net.Addr { return c.local }

func (c *conn) RemoteAddr() net.Addr { return c.remote }

func (c *conn) SetDeadline(t time.Time) error { return c.SetReadDeadline(t) }

func (c *conn) SetReadDeadline(t time.Time) error {
	c.in.setDeadline(t)
	return nil
}

// SetWriteDeadline implements net.Conn: no write waits.
func (c *conn) SetWriteDeadline(time.Time) error { return nil }
