package sim

import (
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/harness/history"
)

// linked is a lab with a connection over the link of its reporter.
func linked(t *testing.T) (*lab, *conn) {
	t.Helper()
	l, _ := clustered(t)
	return l, l.w.connect(&conn{links: []*link{l.n.reports}, server: l.server})
}

// took is how long a request and its answer take.
func (l *lab) took(c *conn) time.Duration {
	l.t.Helper()
	began := l.w.k.Now()
	if rep := l.put(c, "a", 0); rep.err != nil || rep.code >= 300 {
		l.t.Fatalf("put: %+v", rep)
	}
	return l.w.k.Now().Sub(began)
}

// Messages take their size on a throttled link, one after another in each direction, and go on at once when it is restored.
func TestThrottledLink(t *testing.T) {
	l, c := linked(t)
	quick := l.took(c)
	bytes := l.put(c, "a", 0).size() + smallMessage // and the body of the request
	l.n.reports.impair(history.Link{State: history.LinkThrottled, Rate: bytes})
	if slow := l.took(c); quick > 100*time.Millisecond || slow < time.Second || slow > 1500*time.Millisecond {
		t.Errorf("%v, and %v over a link that carries an answer in a second", quick, slow)
	}
	l.n.reports.impair(history.Link{State: history.LinkThrottled, Rate: 1})
	answered := false
	c.ask(request{user: "system:admin", verb: verbGet, key: l.w.crKey()}, func(reply) { answered = true })
	l.pass(10 * time.Second)
	if answered {
		t.Fatal("an answer over a link that carries a byte a second")
	}
	l.n.reports.set(history.LinkOK, 0)
	if l.pass(time.Second); !answered {
		t.Error("no answer after the link was restored")
	}
}

// A lost segment is repeated after 200 ms at the earliest.
func TestLossyLink(t *testing.T) {
	l, c := linked(t)
	l.n.reports.impair(history.Link{State: history.LinkLossy, Loss: 20})
	quick, late := 0, 0
	for range 40 {
		switch took := l.took(c); {
		case took >= segmentTimeout:
			late++
		case took < segmentTimeout/2:
			quick++
		}
	}
	if quick+late != 40 || quick < 10 || late < 10 {
		t.Errorf("%d of 40 requests were quick and %d late, at a loss of 20 percent", quick, late)
	}
}

// What is lost in one direction waits, what goes in the other arrives, and no connection is established.
func TestLinkCutInOneDirection(t *testing.T) {
	for direction, arrives := range map[string]bool{"requests": false, "answers": true} {
		l, c := linked(t)
		l.n.reports.impair(history.Link{State: history.LinkCut, Direction: direction})
		before := l.w.store.Revision()
		answered, dialled := false, false
		c.ask(request{user: "system:admin", verb: verbPatch, key: l.w.crKey(), subresource: "status", manager: "a", force: true, contentType: "application/apply-patch+yaml",
			body: encode(newObject("operator.openshift.io/v1", l.w.operator.core.Kind, "cluster", map[string]any{"status": map[string]any{"observedGeneration": int64(7)}}))},
			func(rep reply) { answered = rep.err == nil })
		l.w.dialNode(l.n.reports, l.server, func(_ *conn, err error) { dialled = err == nil })
		l.pass(time.Second)
		if got := l.w.store.Revision() > before; got != arrives || answered || dialled {
			t.Errorf("%s lost: written %v, answered %v, dialled %v", direction, got, answered, dialled)
		}
		l.n.reports.set(history.LinkOK, 0)
		if l.pass(time.Second); !answered || !dialled {
			t.Errorf("%s restored: answered %v, dialled %v", direction, answered, dialled)
		}
	}
}

// A slow handshake delays new connections alone.
func TestSlowHandshake(t *testing.T) {
	l, c := linked(t)
	l.n.reports.impair(history.Link{State: history.LinkSlowHandshake, Delay: 3 * time.Second})
	if took := l.took(c); took > 100*time.Millisecond {
		t.Errorf("a request on a connection that existed took %v", took)
	}
	began, dialled := l.w.k.Now(), time.Time{}
	l.w.dialNode(l.n.reports, l.server, func(made *conn, err error) {
		if err != nil {
			t.Error(err)
		}
		dialled, c = l.w.k.Now(), made
	})
	l.pass(5 * time.Second)
	if took := dialled.Sub(began).Round(10 * time.Millisecond); took != 3*time.Second {
		t.Fatalf("a handshake took %v, expected 3s", took)
	}
	if took := l.took(c); took > 100*time.Millisecond {
		t.Errorf("a request on the new connection took %v", took)
	}
}

// A load balancer whose list is stale tries API servers that are gone, and none that are new.
func TestStaleList(t *testing.T) {
	l, _ := clustered(t)
	b, added := l.w.balancer, newNode(l.w, "cp-2", nil)
	b.existed()
	added.server.existed()
	l.pass(time.Second)
	front := newLink(l.w, history.RoleAggregator, history.RoleLoadBalancer, "")
	dial := func() (c *conn, took time.Duration) {
		began := l.w.k.Now()
		over := false
		b.dialBalanced(front, func(made *conn, _ error) { c, took, over = made, l.w.k.Now().Sub(began), true })
		if l.pass(5 * time.Second); !over {
			t.Fatal("a connection was neither made nor refused")
		}
		return c, took
	}
	b.stale = b.members()
	l.w.addNode(added)
	for range 2 {
		if c, _ := dial(); c == nil || c.server != l.server {
			t.Fatalf("connected to %+v, expected the one that is listed", c)
		}
	}
	l.n.isolated = true
	within := l.w.timing.DialTimeout()
	if c, took := dial(); c != nil || took < within {
		t.Errorf("%+v after %v, expected nothing after %v", c, took, within)
	}
	b.stale = nil
	if c, took := dial(); c == nil || c.server != added.server || took > within {
		t.Errorf("%+v after %v, expected the one that is new", c, took)
	}
}
