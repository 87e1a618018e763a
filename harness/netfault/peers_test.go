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

	"github.com/kmsharness/kmsharness/harness/netfault"
	"github.com/kmsharness/kmsharness/internal/host"
)

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
	l, err := netfault.NewLink(host.Host{}, "test", upstream)
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
