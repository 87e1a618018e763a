package netfault_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/harness/netfault"
)

// What exists falls silent and goes on afterwards; what comes meanwhile is accepted, gets no answer, and is reset afterwards.
func TestLinkMute(t *testing.T) {
	l := newLink(t, newEcho(t, "up").addr())
	existing := connect(t, l.Addr())
	existing.send("one")
	existing.wants("up one")

	set(t, l, netfault.Fault{Mode: netfault.Mute})
	existing.send("two")
	existing.wantsSilence()
	late := connect(t, l.Addr())
	late.send("hello")
	late.wantsSilence()

	set(t, l, netfault.Fault{})
	existing.wants("up two")
	late.wantsReset()
	again := connect(t, l.Addr())
	again.send("hello")
	again.wants("up hello")
}

// A link that is cut answers what was said meanwhile; a mute one must not: its peer heard it and forgot it.
func TestLinkMuteEndsInEveryOtherMode(t *testing.T) {
	for _, next := range []netfault.Fault{{}, {Mode: netfault.Cut}, {Mode: netfault.Reset}, {Mode: netfault.Slow, Delay: time.Millisecond}} {
		l := newLink(t, newEcho(t, "up").addr())
		set(t, l, netfault.Fault{Mode: netfault.Mute})
		held := connect(t, l.Addr())
		held.wantsSilence()
		set(t, l, netfault.Fault{Mode: netfault.Mute}) // is nothing new
		held.wantsSilence()
		set(t, l, next)
		held.wantsReset()
	}
}

// A peer that accepts but does not read stops a client that sends much, as a cut link does; a mute one reads on.
func TestLinkMuteReads(t *testing.T) {
	l := newLink(t, newEcho(t, "up").addr())
	much := bytes.Repeat([]byte("much\n"), 8<<20)
	send := func(f netfault.Fault, within time.Duration) error {
		set(t, l, f)
		c := connect(t, l.Addr())
		if err := c.SetWriteDeadline(time.Now().Add(within)); err != nil {
			t.Fatal(err)
		}
		_, err := c.Write(much)
		return err
	}
	if err := send(netfault.Fault{Mode: netfault.Mute}, patience); err != nil {
		t.Errorf("a mute link did not read on: %v", err)
	}
	if err := send(netfault.Fault{Mode: netfault.Cut}, silence); err == nil {
		t.Error("a cut link read everything: the subject of this test cannot be told from its opposite")
	}
}

// A mute link answers the TCP handshake whatever is behind it: with a dead upstream there is no difference to be seen.
func TestLinkMuteNeedsNoUpstream(t *testing.T) {
	gone := newEcho(t, "up")
	l := newLink(t, gone.addr())
	gone.close()
	wantsRefusal(t, l.Addr()) // the subject of the next lines, not mute
	set(t, l, netfault.Fault{Mode: netfault.Mute})
	c := connect(t, l.Addr())
	c.send("hello")
	c.wantsSilence()
}

// Who hangs up is forgotten before the mode ends, and Close ends the others.
func TestLinkMuteForgetsWhoHangsUp(t *testing.T) {
	l := newLink(t, newEcho(t, "up").addr())
	set(t, l, netfault.Fault{Mode: netfault.Mute})
	stays, goes := connect(t, l.Addr()), connect(t, l.Addr())
	goes.Close()
	for began := time.Now(); l.Connections() != 1 && time.Since(began) < patience; {
		stays.wantsSilence()
	}
	if n := l.Connections(); n != 1 {
		t.Errorf("%d connections, expected the one that stays", n)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	stays.wantsReset()
}

func TestBalancerMuteMemberNeedsNoUpstream(t *testing.T) {
	lb := newBalancer(t)
	gone := newEcho(t, "a")
	if err := lb.Add("a", gone.addr()); err != nil {
		t.Fatal(err)
	}
	gone.close()
	setMember(t, lb, "a", netfault.Fault{Mode: netfault.Mute})
	c := connect(t, lb.Addr())
	c.send("x")
	c.wantsSilence()
	setMember(t, lb, "a", netfault.Fault{})
	c.wantsReset()
}
