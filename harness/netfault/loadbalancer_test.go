package netfault_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/harness/netfault"
	"github.com/kmsharness/kmsharness/internal/host"
)

const dialTimeout = 100 * time.Millisecond

func newBalancer(t *testing.T, members ...string) *netfault.LoadBalancer {
	t.Helper()
	lb, err := netfault.NewLoadBalancer(host.Host{}, "test", dialTimeout)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := lb.Close(); err != nil {
			t.Error(err)
		}
	})
	for _, m := range members {
		if err := lb.Add(m, newEcho(t, m).addr()); err != nil {
			t.Fatal(err)
		}
	}
	return lb
}

// answers are the members that answer n new connections, one after the other.
func answers(t *testing.T, lb *netfault.LoadBalancer, n int) []string {
	t.Helper()
	var got []string
	for range n {
		c := connect(t, lb.Addr())
		c.send("x")
		line, err := c.receive(patience)
		if err != nil {
			t.Fatalf("after %v: %v", got, err)
		}
		got = append(got, line[:1])
	}
	return got
}

func wantAnswers(t *testing.T, lb *netfault.LoadBalancer, want ...string) {
	t.Helper()
	if got := answers(t, lb, len(want)); !slices.Equal(got, want) {
		t.Errorf("answered by %v, expected %v", got, want)
	}
}

func setMember(t *testing.T, lb *netfault.LoadBalancer, name string, f netfault.Fault) {
	t.Helper()
	if err := lb.Set(name, f); err != nil {
		t.Fatal(err)
	}
}

func TestBalancerTurns(t *testing.T) {
	lb := newBalancer(t, "a", "b", "c")
	wantAnswers(t, lb, "a", "b", "c", "a")
	if err := lb.Remove("b"); err != nil {
		t.Fatal(err)
	}
	if got := lb.Members(); !slices.Equal(got, []string{"a", "c"}) {
		t.Errorf("members are %v", got)
	}
	wantAnswers(t, lb, "c", "a", "c")
}

func TestBalancerFailsOver(t *testing.T) {
	for _, mode := range []netfault.Mode{netfault.Reset, netfault.Cut} {
		t.Run(string(mode), func(t *testing.T) {
			lb := newBalancer(t, "a", "b")
			setMember(t, lb, "a", netfault.Fault{Mode: mode})
			wantAnswers(t, lb, "b", "b")
			setMember(t, lb, "a", netfault.Fault{})
			got := answers(t, lb, 2)
			slices.Sort(got)
			if !slices.Equal(got, []string{"a", "b"}) {
				t.Errorf("after healing answered by %v", got)
			}
		})
	}
}

func TestBalancerDeadMember(t *testing.T) {
	lb := newBalancer(t)
	gone := newEcho(t, "a")
	if err := lb.Add("a", gone.addr()); err != nil {
		t.Fatal(err)
	}
	gone.close()
	wantsRefusal(t, lb.Addr())
	if err := lb.Add("b", newEcho(t, "b").addr()); err != nil {
		t.Fatal(err)
	}
	wantAnswers(t, lb, "b", "b")
}

func TestBalancerMuteMemberIsNotSkipped(t *testing.T) {
	lb := newBalancer(t, "a", "b")
	setMember(t, lb, "a", netfault.Fault{Mode: netfault.Mute})
	stuck := connect(t, lb.Addr())
	stuck.send("x")
	if line, err := stuck.receive(3 * dialTimeout); err == nil {
		t.Fatalf("received %q from a mute member", line)
	}
	wantAnswers(t, lb, "b")
	setMember(t, lb, "a", netfault.Fault{})
	stuck.wantsReset()
}

func TestBalancerFaultOnExistingConnections(t *testing.T) {
	lb := newBalancer(t, "a")
	c := connect(t, lb.Addr())
	c.send("1")
	c.wants("a 1")
	setMember(t, lb, "a", netfault.Fault{Mode: netfault.Cut})
	c.send("2")
	c.wantsSilence()
	setMember(t, lb, "a", netfault.Fault{})
	c.wants("a 2")
	if err := lb.Remove("a"); err != nil {
		t.Fatal(err)
	}
	c.wantsReset()
}

func TestBalancerErrors(t *testing.T) {
	lb := newBalancer(t, "a")
	if err := lb.Add("a", "127.0.0.1:1"); !errors.Is(err, netfault.ErrMemberExists) {
		t.Error(err)
	}
	if err := lb.Remove("z"); !errors.Is(err, netfault.ErrNoMember) {
		t.Error(err)
	}
	if err := lb.Set("z", netfault.Fault{}); !errors.Is(err, netfault.ErrNoMember) {
		t.Error(err)
	}
	if err := lb.Close(); err != nil {
		t.Error(err)
	}
	if err := lb.Add("b", "127.0.0.1:1"); !errors.Is(err, netfault.ErrClosed) {
		t.Error(err)
	}
}
