package netfault_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/kmsharness/kmsharness/harness/netfault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// silence is how long a test listens to be sure that nothing comes.
const silence = 80 * time.Millisecond

// patience bounds waits for what must come.
const patience = 5 * time.Second

// echo answers every line with its own name and the line.
type echo struct {
	listener net.Listener
	name     string
	all      sync.WaitGroup
	mu       sync.Mutex
	conns    []net.Conn
}

func newEcho(t *testing.T, name string) *echo {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	e := &echo{listener: l, name: name}
	e.all.Go(e.serve)
	t.Cleanup(e.close)
	return e
}

func (e *echo) addr() string { return e.listener.Addr().String() }

func (e *echo) close() {
	e.listener.Close()
	e.mu.Lock()
	for _, c := range e.conns {
		c.Close()
	}
	e.mu.Unlock()
	e.all.Wait()
}

func (e *echo) serve() {
	for {
		c, err := e.listener.Accept()
		if err != nil {
			return
		}
		e.mu.Lock()
		e.conns = append(e.conns, c)
		e.mu.Unlock()
		e.all.Go(func() {
			defer c.Close()
			lines := bufio.NewScanner(c)
			for lines.Scan() {
				if _, err := io.WriteString(c, e.name+" "+lines.Text()+"\n"); err != nil {
					return
				}
			}
		})
	}
}

// client is one connection with line-wise reads.
type client struct {
	t *testing.T
	net.Conn
	lines *bufio.Reader
}

func connect(t *testing.T, addr string) *client {
	t.Helper()
	c, err := net.DialTimeout("tcp", addr, patience)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return &client{t: t, Conn: c, lines: bufio.NewReader(c)}
}

func (c *client) send(line string) {
	c.t.Helper()
	if _, err := io.WriteString(c, line+"\n"); err != nil {
		c.t.Fatalf("send %q: %v", line, err)
	}
}

func (c *client) receive(within time.Duration) (string, error) {
	c.t.Helper()
	if err := c.SetReadDeadline(time.Now().Add(within)); err != nil {
		c.t.Fatal(err)
	}
	return c.lines.ReadString('\n')
}

func (c *client) wants(line string) {
	c.t.Helper()
	got, err := c.receive(patience)
	if err != nil || got != line+"\n" {
		c.t.Fatalf("received %q, %v; expected %q", got, err, line)
	}
}

func (c *client) wantsSilence() {
	c.t.Helper()
	var timeout net.Error
	got, err := c.receive(silence)
	if !errors.As(err, &timeout) || !timeout.Timeout() {
		c.t.Fatalf("received %q, %v; expected silence", got, err)
	}
}

func (c *client) wantsReset() {
	c.t.Helper()
	if got, err := c.receive(patience); !errors.Is(err, syscall.ECONNRESET) {
		c.t.Fatalf("received %q, %v; expected a reset", got, err)
	}
}

// wantsRefusal connects and wants a reset, which comes with the handshake or a moment later.
func wantsRefusal(t *testing.T, addr string) {
	t.Helper()
	c, err := net.DialTimeout("tcp", addr, patience)
	if errors.Is(err, syscall.ECONNRESET) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	(&client{t: t, Conn: c, lines: bufio.NewReader(c)}).wantsReset()
}

func newLink(t *testing.T, upstream string) *netfault.Link {
	t.Helper()
	l, err := netfault.NewLink("test", upstream)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		if n := l.Connections(); n != 0 {
			t.Errorf("%d connections after Close", n)
		}
	})
	return l
}

func set(t *testing.T, l *netfault.Link, f netfault.Fault) {
	t.Helper()
	if err := l.Set(f); err != nil {
		t.Fatal(err)
	}
}

func TestLinkCut(t *testing.T) {
	for _, mode := range []netfault.Mode{netfault.Cut, netfault.NotReady} {
		t.Run(string(mode), func(t *testing.T) {
			l := newLink(t, newEcho(t, "up").addr())
			existing := connect(t, l.Addr())
			existing.send("one")
			existing.wants("up one")

			set(t, l, netfault.Fault{Mode: mode})
			existing.send("two")
			existing.wantsSilence()
			late := connect(t, l.Addr())
			late.send("hello")
			late.wantsSilence()

			set(t, l, netfault.Fault{})
			existing.wants("up two")
			late.wants("up hello")
			existing.send("three")
			existing.wants("up three")
		})
	}
}

func TestLinkReset(t *testing.T) {
	l := newLink(t, newEcho(t, "up").addr())
	existing := connect(t, l.Addr())
	existing.send("one")
	existing.wants("up one")

	set(t, l, netfault.Fault{Mode: netfault.Reset})
	existing.wantsReset()
	wantsRefusal(t, l.Addr())

	set(t, l, netfault.Fault{})
	late := connect(t, l.Addr())
	late.send("hello")
	late.wants("up hello")
}

func TestLinkCutThenReset(t *testing.T) {
	l := newLink(t, newEcho(t, "up").addr())
	set(t, l, netfault.Fault{Mode: netfault.Cut})
	waiting := connect(t, l.Addr())
	waiting.send("hello")
	waiting.wantsSilence()
	set(t, l, netfault.Fault{Mode: netfault.Reset})
	waiting.wantsReset()
}

func TestLinkSlow(t *testing.T) {
	const delay = 60 * time.Millisecond
	l := newLink(t, newEcho(t, "up").addr())
	c := connect(t, l.Addr())
	set(t, l, netfault.Fault{Mode: netfault.Slow, Delay: delay})
	begin := time.Now()
	c.send("one")
	c.wants("up one")
	if took := time.Since(begin); took < 2*delay {
		t.Errorf("a round trip took %v, expected at least %v", took, 2*delay)
	}
	// Healing lets go of what waits at once.
	set(t, l, netfault.Fault{Mode: netfault.Slow, Delay: netfault.MaxDelay})
	c.send("two")
	c.wantsSilence()
	set(t, l, netfault.Fault{})
	c.wants("up two")
}

func TestLinkUpstreamGone(t *testing.T) {
	up := newEcho(t, "old")
	l := newLink(t, up.addr())
	c := connect(t, l.Addr())
	c.send("one")
	c.wants("old one")
	up.close()
	if got, err := c.receive(patience); err == nil {
		t.Fatalf("received %q from an upstream that has gone", got)
	}
	wantsRefusal(t, l.Addr())
	l.SetUpstream(newEcho(t, "new").addr())
	late := connect(t, l.Addr())
	late.send("hello")
	late.wants("new hello")
}

// A peer that reads nothing must not hold up a change of the fault, nor Close.
func TestLinkPeerDoesNotRead(t *testing.T) {
	l := newLink(t, newEcho(t, "up").addr())
	stuffed := connect(t, l.Addr())
	if err := stuffed.SetWriteDeadline(time.Now().Add(300 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	line := make([]byte, 32<<10)
	line[len(line)-1] = '\n'
	var err error
	for err == nil { // until every buffer on the way there and back is full
		_, err = stuffed.Write(line)
	}
	for _, f := range []netfault.Fault{{Mode: netfault.Cut}, {}, {Mode: netfault.Reset}} {
		begin := time.Now()
		set(t, l, f)
		if took := time.Since(begin); took > time.Second {
			t.Errorf("%v took %v", f, took)
		}
	}
}

func TestLinkCloseWhileCut(t *testing.T) {
	l := newLink(t, newEcho(t, "up").addr())
	existing := connect(t, l.Addr())
	existing.send("one")
	existing.wants("up one")
	set(t, l, netfault.Fault{Mode: netfault.Cut})
	existing.send("two")
	connect(t, l.Addr()).wantsSilence()
	for range 2 {
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	existing.wantsReset()
}

// Many connections come, go and talk while the fault changes; afterwards a new connection works and nothing leaks.
func TestLinkChurn(t *testing.T) {
	l := newLink(t, newEcho(t, "up").addr())
	stop := make(chan struct{})
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				talkOnce(l.Addr())
			}
		})
	}
	modes := []netfault.Fault{{Mode: netfault.Cut}, {}, {Mode: netfault.Reset}, {Mode: netfault.Slow, Delay: time.Millisecond}, {}}
	for i := range 200 {
		set(t, l, modes[i%len(modes)])
		c, err := net.Dial("tcp", l.Addr())
		if err == nil {
			c.Close()
		}
	}
	close(stop)
	set(t, l, netfault.Fault{})
	all.Wait()
	c := connect(t, l.Addr())
	c.send("after")
	c.wants("up after")
}

// talkOnce sends a few lines and ignores what happens to them.
func talkOnce(addr string) {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return
	}
	defer c.Close()
	if c.SetDeadline(time.Now().Add(20*time.Millisecond)) != nil {
		return
	}
	for range 10 {
		if _, err := io.WriteString(c, "line\n"); err != nil {
			return
		}
		if _, err := bufio.NewReader(c).ReadString('\n'); err != nil {
			return
		}
	}
}

func TestFaultErrors(t *testing.T) {
	l := newLink(t, "127.0.0.1:1")
	for _, f := range []netfault.Fault{
		{Mode: "broken"}, {Mode: netfault.Slow}, {Mode: netfault.Slow, Delay: -1},
		{Mode: netfault.Slow, Delay: netfault.MaxDelay + 1}, {Mode: netfault.Cut, Delay: time.Second}, {Delay: time.Second},
	} {
		if err := l.Set(f); err == nil {
			t.Errorf("%+v was accepted", f)
		}
	}
	if got := l.Fault(); got.Mode != netfault.OK {
		t.Errorf("a bad fault changed the link to %+v", got)
	}
}
