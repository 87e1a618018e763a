package netfault_test

import (
	"bufio"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/kmsharness/kmsharness/harness/netfault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestLinkCut(t *testing.T) {
	l := newLink(t, newEcho(t, "up").addr())
	existing := connect(t, l.Addr())
	existing.send("one")
	existing.wants("up one")

	set(t, l, netfault.Fault{Mode: netfault.Cut})
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
	for _, f := range []netfault.Fault{{Mode: netfault.Cut}, {}, {Mode: netfault.Mute}, {Mode: netfault.Reset}} {
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
	modes := []netfault.Fault{{Mode: netfault.Cut}, {}, {Mode: netfault.Mute}, {Mode: netfault.Cut}, {Mode: netfault.Mute}, {Mode: netfault.Reset}, {Mode: netfault.Slow, Delay: time.Millisecond}, {}}
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
