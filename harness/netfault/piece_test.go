package netfault_test

import (
	"bytes"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/harness/netfault"
)

// roundTrip is how long a line takes to the echo and back.
func roundTrip(c *client, line string) time.Duration {
	c.t.Helper()
	began := time.Now()
	c.send(line)
	c.wants("up " + line)
	return time.Since(began)
}

// Connections share the rate of a throttled link; each direction has it for itself.
func TestLinkThrottled(t *testing.T) {
	l := newLink(t, newEcho(t, "up").addr())
	c, other := connect(t, l.Addr()), connect(t, l.Addr())
	line := string(bytes.Repeat([]byte("x"), 300))
	roundTrip(c, line)
	set(t, l, netfault.Fault{Mode: netfault.Throttled, Rate: 2000})
	if took := roundTrip(c, line); took < 300*time.Millisecond {
		t.Errorf("300 bytes there and back took %v, expected 300 ms of 2000 bytes a second", took)
	}
	began := time.Now()
	other.send(line)
	c.send(line)
	other.wants("up " + line)
	c.wants("up " + line)
	if took := time.Since(began); took < 450*time.Millisecond {
		t.Errorf("two connections took %v, expected 450 ms: they share the link", took)
	}
	// Healing lets go of what waits at once.
	set(t, l, netfault.Fault{Mode: netfault.Throttled, Rate: 1})
	c.send("two")
	c.wantsSilence()
	set(t, l, netfault.Fault{})
	c.wants("up two")
}

// A lost segment is repeated after 200 ms at the earliest, and what follows waits for it.
func TestLinkLossy(t *testing.T) {
	l := newLink(t, newEcho(t, "up").addr())
	c := connect(t, l.Addr())
	roundTrip(c, "one")
	set(t, l, netfault.Fault{Mode: netfault.Lossy, Loss: 50})
	late := false
	for range 8 {
		if late = roundTrip(c, "x") >= 200*time.Millisecond; late {
			break
		}
	}
	if !late {
		t.Error("no segment was lost in eight round trips over a link that loses half of them")
	}
	set(t, l, netfault.Fault{Mode: netfault.Lossy, Loss: 99})
	c.send("two")
	c.wantsSilence()
	fresh := connect(t, l.Addr())
	fresh.send("hello")
	fresh.wantsSilence()
	set(t, l, netfault.Fault{})
	c.wants("up two")
	fresh.wants("up hello")
}

// One direction of existing connections goes on; new ones need both.
func TestLinkCutInOneDirection(t *testing.T) {
	l := newLink(t, newEcho(t, "up").addr())
	c := connect(t, l.Addr())
	roundTrip(c, "one")
	for _, direction := range []netfault.Direction{netfault.Requests, netfault.Answers} {
		set(t, l, netfault.Fault{Mode: netfault.Cut, Direction: direction})
		c.send("two")
		c.wantsSilence()
		late := connect(t, l.Addr())
		late.send("hello")
		late.wantsSilence()
		set(t, l, netfault.Fault{})
		c.wants("up two")
		late.wants("up hello")
	}
	// The echo has answered, although its answer is lost: the request got through.
	set(t, l, netfault.Fault{Mode: netfault.Cut, Direction: netfault.Answers})
	c.send("three")
	c.wantsSilence()
	set(t, l, netfault.Fault{Mode: netfault.Cut, Direction: netfault.Requests})
	c.wants("up three")
	c.send("four")
	c.wantsSilence()
}

// The first answer on a new connection takes its time, what follows does not, and existing connections are as before.
func TestLinkSlowHandshake(t *testing.T) {
	const delay = time.Second
	l := newLink(t, newEcho(t, "up").addr())
	existing := connect(t, l.Addr())
	roundTrip(existing, "one")
	set(t, l, netfault.Fault{Mode: netfault.SlowHandshake, Delay: delay})
	if took := roundTrip(existing, "two"); took > delay/2 {
		t.Errorf("an answer on an existing connection took %v, expected next to nothing", took)
	}
	began := time.Now()
	fresh := connect(t, l.Addr())
	if roundTrip(fresh, "hello"); time.Since(began) < delay {
		t.Errorf("the first answer took %v, expected %v", time.Since(began), delay)
	}
	if took := roundTrip(fresh, "again"); took > delay/2 {
		t.Errorf("the second answer took %v, expected next to nothing", took)
	}
}

func TestBalancerStaleList(t *testing.T) {
	lb := newBalancer(t, "a", "b")
	lb.Freeze()
	if err := errors.Join(lb.Remove("a"), lb.Add("c", newEcho(t, "c").addr())); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	wantAnswers(t, lb, "b", "b", "b")
	if took := time.Since(began); took < dialTimeout {
		t.Errorf("three connections took %v, expected the dial timeout for a member that is gone", took)
	}
	lb.Update()
	got := answers(t, lb, 2)
	slices.Sort(got)
	if !slices.Equal(got, []string{"b", "c"}) {
		t.Errorf("after the update answered by %v", got)
	}
}

func TestParametersOfFaults(t *testing.T) {
	for _, f := range []netfault.Fault{
		{Mode: netfault.Throttled}, {Mode: netfault.Throttled, Rate: -1}, {Mode: netfault.Cut, Rate: 1}, {Mode: netfault.Lossy}, {Mode: netfault.Lossy, Loss: 100},
		{Mode: netfault.Slow, Delay: 1, Loss: 1}, {Mode: netfault.SlowHandshake}, {Mode: netfault.Reset, Direction: netfault.Answers},
		{Mode: netfault.Cut, Direction: "sideways"}, {Mode: netfault.Throttled, Rate: 1, Delay: 1},
	} {
		if err := f.Validate(); err == nil {
			t.Errorf("%+v was accepted", f)
		}
	}
}
