package proxy_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/kmsharness/kmsharness/harness/netfault/proxy"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds waits for what must come; silence is how long a test listens to be sure that nothing does.
const (
	patience = 5 * time.Second
	silence  = 80 * time.Millisecond
)

func TestSlowProxy(t *testing.T) {
	p := start(t, "--fault", `{"mode":"slow","delay":50000000}`)
	c := p.dial(t)
	began := time.Now()
	if got, err := c.ask(patience); got != "you said hello\n" || err != nil {
		t.Fatalf("%q, %v", got, err)
	}
	if took := time.Since(began); took < 100*time.Millisecond {
		t.Errorf("a round trip took %v, expected twice the delay", took)
	}
	p.end(t)
	if _, err := c.ask(patience); !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, syscall.EPIPE) {
		t.Errorf("after the end: %v, expected a reset", err)
	}
}

// Without a fault the same question is answered at once, so what the next test sees is the fault.
func TestProxyWithoutFault(t *testing.T) {
	p := start(t, "--fault", `{"mode":"ok"}`)
	if got, err := p.dial(t).ask(patience); got != "you said hello\n" || err != nil {
		t.Fatalf("%q, %v", got, err)
	}
	p.end(t)
}

func TestMuteProxy(t *testing.T) {
	p := start(t, "--fault", `{"mode":"mute"}`)
	c := p.dial(t)
	if got, err := c.ask(silence); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("%q, %v, expected silence", got, err)
	}
	p.end(t)
	if _, err := c.ask(patience); !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, syscall.EPIPE) {
		t.Errorf("after the end: %v, expected a reset", err)
	}
}

func TestProxyThatCannotRun(t *testing.T) {
	for text, c := range map[string]struct {
		code int
		args []string
	}{
		"kmsharness-proxy: --upstream is missing": {2, nil},
		"kmsharness-proxy: ready file: open /no":  {1, []string{"--upstream", "h:1", "--fault", `{"mode":"mute"}`, "--ready", "/no/r"}},
	} {
		var errs strings.Builder
		code := proxy.Main(context.Background(), c.args, io.Discard, &errs)
		if code != c.code || !strings.Contains(errs.String(), text) || strings.Count(errs.String(), "\n") != 1 {
			t.Errorf("%q: code %d, %q, expected %d and one line with %q", c.args, code, errs.String(), c.code, text)
		}
	}
	if code := proxy.Main(context.Background(), []string{"-h"}, io.Discard, io.Discard); code != 0 {
		t.Errorf("help: code %d", code)
	}
}

// running is a proxy in front of a server that repeats what it hears.
type running struct {
	ready string
	stop  context.CancelFunc
	code  chan int
	errs  strings.Builder
}

func start(t *testing.T, fault ...string) *running {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	r := &running{ready: filepath.Join(t.TempDir(), "ready"), stop: cancel, code: make(chan int, 1)}
	args := append([]string{"--upstream", repeater(t), "--ready", r.ready}, fault...)
	go func() { r.code <- proxy.Main(ctx, args, io.Discard, &r.errs) }()
	t.Cleanup(cancel)
	return r
}

// dial waits until the proxy says that it accepts.
func (r *running) dial(t *testing.T) conversation {
	t.Helper()
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	for {
		text, err := os.ReadFile(r.ready)
		if err == nil {
			return dial(t, string(text))
		}
		select {
		case <-ticker.C:
		case code := <-r.code:
			t.Fatalf("the proxy ended with %d: %s", code, r.errs.String())
		}
	}
}

func (r *running) end(t *testing.T) {
	t.Helper()
	r.stop()
	if code := <-r.code; code != 0 || r.errs.String() != "" {
		t.Errorf("code %d, %q", code, r.errs.String())
	}
	if _, err := os.Stat(r.ready); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the ready file is still there: %v", err)
	}
}

type conversation struct {
	net.Conn
	lines *bufio.Reader
}

func dial(t *testing.T, addr string) conversation {
	t.Helper()
	c, err := net.DialTimeout("tcp", addr, patience)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return conversation{c, bufio.NewReader(c)}
}

func (c conversation) ask(within time.Duration) (string, error) {
	if err := c.SetDeadline(time.Now().Add(within)); err != nil {
		return "", err
	}
	if _, err := fmt.Fprintln(c, "hello"); err != nil {
		return "", err
	}
	return c.lines.ReadString('\n')
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// repeater is a server that repeats one line per connection after another until the peer leaves.
func repeater(t *testing.T) string {
	l := listen(t)
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer c.Close()
				for lines := bufio.NewScanner(c); lines.Scan(); {
					fmt.Fprintln(c, "you said "+lines.Text())
				}
			})
		}
	})
	t.Cleanup(func() { l.Close(); all.Wait() })
	return l.Addr().String()
}
