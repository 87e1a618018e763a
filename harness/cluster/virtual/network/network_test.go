package network

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// serve accepts connections of a machine and gives each to handle, until the test ends.
func serve(t *testing.T, n *Network, host, network, address string, handle func(net.Conn)) net.Listener {
	t.Helper()
	l, err := n.Host(host).Listen(t.Context(), network, address)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go handle(c)
		}
	}()
	t.Cleanup(n.Close)
	return l
}

// echo sends lines back.
func echo(c net.Conn) {
	defer c.Close()
	_, _ = io.Copy(c, c) // the client sees it
}

func dial(t *testing.T, n *Network, from, network, address string) net.Conn {
	t.Helper()
	c, err := n.Host(from).Dial(t.Context(), network, address)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func roundTrip(t *testing.T, c net.Conn) time.Duration {
	t.Helper()
	began := time.Now()
	if _, err := io.WriteString(c, "hello\n"); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(c).ReadString('\n'); err != nil || line != "hello\n" {
		t.Fatalf("got %q, %v", line, err)
	}
	return time.Since(began)
}

// A connection takes a little time, which depends on the seed alone.
func TestLatency(t *testing.T) {
	once := func(seed uint64) (took string) {
		synctest.Test(t, func(t *testing.T) {
			n := New(seed)
			serve(t, n, "server", "tcp", "server:80", echo)
			c := dial(t, n, "client", "tcp", "server:80")
			for range 3 {
				took += fmt.Sprint(roundTrip(t, c), " ")
			}
			c.Close()
		})
		return took
	}
	if a, b, other := once(1), once(1), once(2); a != b || a == other {
		t.Errorf("seed 1: %s and %s, seed 2: %s", a, b, other)
	}
}

// What is sent in one instant arrives together, in its order.
func TestOneInstantIsOnePacket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := New(1)
		got := make(chan string)
		serve(t, n, "server", "tcp", "server:80", func(c net.Conn) {
			b := make([]byte, 100)
			for {
				k, err := c.Read(b)
				if err != nil {
					close(got)
					return
				}
				got <- string(b[:k])
			}
		})
		c := dial(t, n, "client", "tcp", "server:80")
		for _, s := range []string{"a", "b", "c"} {
			_, _ = io.WriteString(c, s)
		}
		time.Sleep(time.Nanosecond)
		_, _ = io.WriteString(c, "d")
		c.Close()
		if first, second, more := <-got, <-got, <-got; first != "abc" || second != "d" || more != "" {
			t.Errorf("%q, %q, %q", first, second, more)
		}
	})
}

func TestRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := New(1)
		refused := func(what string) {
			t.Helper()
			_, err := n.Host("client").Dial(t.Context(), "tcp", "server:80")
			if !errors.Is(err, syscall.ECONNREFUSED) || err.Error() != "dial tcp server:80: connect: connection refused" {
				t.Errorf("%s: %v", what, err)
			}
		}
		refused("nobody listens")
		l := serve(t, n, "server", "tcp", "server:80", echo)
		if _, err := n.Host("other").Listen(t.Context(), "tcp", "server:80"); !errors.Is(err, syscall.EADDRINUSE) {
			t.Errorf("a second listener: %v", err)
		}
		n.SetLink("client", "server", Link{Refused: true})
		refused("the link refuses")
		n.SetLink("client", "server", Link{})
		dial(t, n, "client", "tcp", "server:80").Close()
		l.Close()
		refused("the listener is closed")
	})
}

func TestReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := New(1)
		serve(t, n, "server", "tcp", "server:80", echo)
		c, other := dial(t, n, "client", "tcp", "server:80"), dial(t, n, "other", "tcp", "server:80")
		time.AfterFunc(time.Second, func() { n.Reset("server", "client") })
		if _, err := c.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) || err.Error() != fmt.Sprintf("read tcp %s->server:80: read: connection reset by peer", c.LocalAddr()) {
			t.Error(err)
		}
		if _, err := io.WriteString(c, "x"); !errors.Is(err, syscall.EPIPE) {
			t.Error(err)
		}
		roundTrip(t, other)
		n.Kill("server")
		if _, err := other.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
			t.Error(err)
		}
		if _, err := n.Host("client").Dial(t.Context(), "tcp", "server:80"); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Error(err)
		}
	})
}

// What is sent over a link that is cut, or to a machine that is frozen, arrives when that is over, and its end as well.
func TestCutAndFrozen(t *testing.T) {
	for name, stop := range map[string]func(n *Network, stopped bool){
		"cut there":  func(n *Network, stopped bool) { n.SetLink("client", "server", Link{Cut: stopped}) },
		"cut back":   func(n *Network, stopped bool) { n.SetLink("server", "client", Link{Cut: stopped}) },
		"frozen":     func(n *Network, stopped bool) { n.Freeze("server", stopped) },
		"frozen too": func(n *Network, stopped bool) { n.Freeze("client", stopped) },
		"silent":     func(n *Network, stopped bool) { n.Silence("server", stopped) },
		"silent too": func(n *Network, stopped bool) { n.Silence("client", stopped) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := New(1)
				serve(t, n, "server", "tcp", "server:80", echo)
				c := dial(t, n, "client", "tcp", "server:80")
				stop(n, true)
				time.AfterFunc(time.Minute, func() { stop(n, false) })
				if took := roundTrip(t, c); took < time.Minute || took > time.Minute+2*(latencies.least+latencies.more) {
					t.Errorf("an answer after %v", took)
				}
				stop(n, true)
				time.AfterFunc(time.Minute, func() { stop(n, false) })
				began := time.Now()
				c.(*conn).out.finish()
				if _, err := c.Read(make([]byte, 1)); err != io.EOF || time.Since(began) < time.Minute {
					t.Errorf("%v after %v", err, time.Since(began))
				}
			})
		})
	}
}

// TestAcceptedAfterThePause: a machine that is frozen has connections, and accepts them when it is thawed, so that its time-outs for a first request
// begin then.
func TestAcceptedAfterThePause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := New(1)
		l, err := n.Host("server").Listen(t.Context(), "tcp", "server:80")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		n.Freeze("server", true)
		time.AfterFunc(time.Minute, func() { n.Freeze("server", false) })
		began := time.Now()
		defer dial(t, n, "client", "tcp", "server:80").Close()
		if took := time.Since(began); took > time.Second {
			t.Errorf("a connection after %v", took)
		}
		c, err := l.Accept()
		if took := time.Since(began); err != nil || took < time.Minute {
			t.Errorf("accepted after %v: %v", took, err)
		}
		c.Close()
	})
}

// TestWriteToWhatIsClosed: while the end has not arrived, writes are lost and do not fail, or gRPC would try again in the same instant without end.
func TestWriteToWhatIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := New(1)
		l, err := n.Host("server").Listen(t.Context(), "tcp", "server:80")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		c := dial(t, n, "client", "tcp", "server:80")
		other, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		other.Close()
		if _, err := io.WriteString(c, "x"); err != nil {
			t.Error(err)
		}
		if _, err := c.Read(make([]byte, 1)); err != io.EOF {
			t.Error(err)
		}
		if _, err := io.WriteString(c, "x"); !errors.Is(err, syscall.EPIPE) {
			t.Error(err)
		}
	})
}

// What was withheld arrives packet by packet, each in an instant of its own, and then the end.
func TestWithheldPackets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := New(1)
		var got []string
		at := map[time.Time]bool{}
		done := make(chan struct{})
		serve(t, n, "server", "tcp", "server:80", func(c net.Conn) {
			defer close(done)
			for b, err := make([]byte, 10), error(nil); err == nil; {
				var size int
				size, err = c.Read(b)
				got, at[time.Now()] = append(got, fmt.Sprint(string(b[:size]), err)), true
			}
		})
		c := dial(t, n, "client", "tcp", "server:80")
		n.Freeze("server", true)
		for _, text := range []string{"one", "two"} {
			_, _ = io.WriteString(c, text)
			time.Sleep(time.Second)
		}
		c.Close()
		time.Sleep(time.Second)
		n.Freeze("server", false)
		<-done
		if want := []string{"one<nil>", "two<nil>", "EOF"}; !slices.Equal(got, want) || len(at) != len(want) {
			t.Errorf("%q at %d instants, expected %q", got, len(at), want)
		}
	})
}

// A machine that is silent reaches its own sockets, and connects with others once that is over.
func TestSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := New(1)
		socket := filepath.Join(t.TempDir(), "s")
		serve(t, n, "plugin", "unix", socket, echo)
		serve(t, n, "server", "tcp", "server:80", echo)
		c := dial(t, n, "client", "unix", socket)
		n.Silence("client", true)
		if took := roundTrip(t, c) + roundTrip(t, dial(t, n, "client", "unix", socket)); took > time.Millisecond {
			t.Errorf("its own sockets answer after %v", took)
		}
		time.AfterFunc(10*time.Second, func() { n.Silence("client", false) })
		began := time.Now()
		roundTrip(t, dial(t, n, "client", "tcp", "server:80"))
		if took := time.Since(began); took < 10*time.Second || took > DialTimeout {
			t.Errorf("connected after %v", took)
		}
	})
}

// A dial over a link that is cut waits for its end, and gives up.
func TestDialOverACut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := New(1)
		serve(t, n, "server", "tcp", "server:80", echo)
		n.SetLink("server", "client", Link{Cut: true})
		time.AfterFunc(2*time.Second, func() { n.SetLink("server", "client", Link{}) })
		began := time.Now()
		dial(t, n, "client", "tcp", "server:80").Close()
		if took := time.Since(began); took < 3*time.Second || took > 3*time.Second+time.Millisecond { // the second repetition
			t.Errorf("connected after %v", took)
		}
		n.SetLink("client", "server", Link{Cut: true})
		began = time.Now()
		if _, err := n.Host("client").Dial(t.Context(), "tcp", "server:80"); !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(began) != DialTimeout {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := n.Host("client").Dial(ctx, "tcp", "server:80"); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	})
}

func TestDelayAndDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := New(1)
		serve(t, n, "server", "tcp", "server:80", echo)
		c := dial(t, n, "client", "tcp", "server:80")
		n.SetLink("server", "client", Link{Delay: time.Second})
		if took := roundTrip(t, c); took < time.Second || took > time.Second+2*(latencies.least+latencies.more) {
			t.Errorf("an answer after %v", took)
		}
		if err := c.SetDeadline(time.Now().Add(time.Second)); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		var timeout net.Error
		if _, err := c.Read(make([]byte, 1)); !errors.As(err, &timeout) || !timeout.Timeout() || time.Since(began) != time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		c.Close()
		if _, err := c.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
		if _, err := c.Write([]byte("x")); err == nil {
			t.Error("written to a closed connection")
		}
	})
}

// A unix socket takes connections while its file is there, is a socket and may be written.
func TestUnixSockets(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kms-1.sock")
	synctest.Test(t, func(t *testing.T) {
		n := New(1)
		l := serve(t, n, "plugin", "unix", path, echo)
		if info, err := os.Stat(path); err != nil || info.Mode().Type() != fs.ModeSocket {
			t.Errorf("%v, %v", info, err)
		}
		c := dial(t, n, "apiserver", "unix", path)
		roundTrip(t, c)
		c.Close()
		refused := func(want error, says string) {
			t.Helper()
			if _, err := n.Host("apiserver").Dial(t.Context(), "unix", path); !errors.Is(err, want) || !strings.HasSuffix(err.Error(), says) {
				t.Error(err)
			}
		}
		_ = os.Chmod(path, 0)
		refused(syscall.EACCES, "connect: permission denied")
		_ = os.Chmod(path, 0o600)
		l.Close()
		refused(syscall.ECONNREFUSED, "connect: connection refused")
		if _, err := n.Host("plugin").Listen(t.Context(), "unix", path); !errors.Is(err, syscall.EADDRINUSE) {
			t.Errorf("where a socket is already: %v", err)
		}
		_ = os.Remove(path)
		refused(syscall.ENOENT, "connect: no such file or directory")
	})
}

// HTTP/2 finds by its pings that a link is cut.
func TestPingFindsACut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := New(1)
		l, err := n.Host("server").Listen(t.Context(), "tcp", "server:80")
		if err != nil {
			t.Fatal(err)
		}
		var plain http.Protocols
		plain.SetUnencryptedHTTP2(true)
		server := &http.Server{Protocols: &plain, Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })}
		go server.Serve(l)
		defer n.Close()
		defer server.Close()
		client := &http.Transport{Protocols: &plain, DialContext: n.Host("client").DialFunc,
			HTTP2: &http.HTTP2Config{SendPingTimeout: 30 * time.Second, PingTimeout: 15 * time.Second}}
		time.AfterFunc(time.Minute, func() { n.SetLink("server", "client", Link{Cut: true}) })
		began := time.Now()
		r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://server:80", nil)
		if _, err = client.RoundTrip(r); err == nil || time.Since(began) < 75*time.Second || time.Since(began) > 110*time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}

// What a killed program still does takes no time and reaches nobody.
func TestIsolated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := New(1)
		serve(t, n, "b", "tcp", "b:1", echo)
		sockets := n.Isolate("a")
		began := time.Now()
		if _, err := n.Host("a").Dial(t.Context(), "tcp", "b:1"); !errors.Is(err, syscall.ENETDOWN) {
			t.Errorf("dial: %v", err)
		}
		if took := time.Since(began); took != 0 {
			t.Errorf("it took %v", took)
		}
		if err := n.Release("a", sockets); err != nil {
			t.Fatal(err)
		}
		roundTrip(t, dial(t, n, "a", "tcp", "b:1"))
	})
}

// What is sent later arrives later, whatever was sent before.
func TestLatencyKeepsOrder(t *testing.T) {
	begin := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, l := range []latency{latencies, latenciesConnect, latenciesUnix} {
		var last time.Time
		for i := range 100_000 {
			sent := begin.Add(time.Duration(i) * 37)
			takes := l.at(7, sent)
			if takes < l.least || takes >= l.least+l.more {
				t.Fatalf("%v: %v", l, takes)
			}
			if at := sent.Add(takes); !at.After(last) {
				t.Fatalf("%v: sent at %v arrives at %v, what was sent before at %v", l, sent, at, last)
			} else {
				last = at
			}
		}
	}
}

// A path that was removed may be listened on again: connections go to the newer listener, those of before stay, and the end of the older one changes nothing.
func TestTakenOverPath(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path, n := filepath.Join(t.TempDir(), "kms-1.sock"), New(1)
		as := func(name string) func(net.Conn) {
			return func(c net.Conn) {
				defer c.Close()
				for in := bufio.NewScanner(c); in.Scan(); {
					_, _ = fmt.Fprintln(c, name)
				}
			}
		}
		server := func(c net.Conn) string {
			answer := make([]byte, 4)
			if _, err := io.WriteString(c, "?\n"); err != nil {
				return err.Error()
			}
			_, _ = io.ReadFull(c, answer)
			return strings.TrimSpace(string(answer))
		}
		old := serve(t, n, "old", "unix", path, as("old"))
		before := dial(t, n, "client", "unix", path)
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		serve(t, n, "new", "unix", path, as("new"))
		for name, c := range map[string]net.Conn{"old": before, "new": dial(t, n, "client", "unix", path)} {
			if got := server(c); got != name {
				t.Errorf("%q answers, expected %q", got, name)
			}
		}
		_ = old.Close()
		if got := server(dial(t, n, "client", "unix", path)); got != "new" {
			t.Errorf("%q answers after the end of the older one", got)
		}
	})
}
