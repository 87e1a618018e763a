package sim

import (
	"errors"
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/harness/history"
)

// A lookup fails at once where DNS answers, and after a write's deadline where it does not; an answer is right until the load balancer moves, and
// again when the fault has ended.
func TestLookups(t *testing.T) {
	l, c := linked(t)
	l.w.dns = true
	r := newResolver(l.w, "cp-1")
	lookup := func() (address int, took time.Duration, err error) {
		began := l.w.k.Now()
		l.until(func(done func()) {
			r.lookup(func(a int, e error) { address, took, err = a, l.w.k.Now().Sub(began), e; done() })
		})
		return address, took, err
	}
	write := l.w.timing.WriteTimeout
	for _, want := range []struct {
		state string
		err   error
		least time.Duration
		right bool // the answer
	}{
		{history.LinkOK, nil, 0, true}, {history.LinkNXDomain, errNoSuchHost, 0, false}, {history.LinkServFail, errServFail, 0, false},
		{history.LinkCut, errNoAnswer, write, false}, {history.LinkStale, nil, 0, false}, {history.LinkOK, nil, 0, true},
	} {
		r.become(want.state, l.n.reports)
		address, took, err := lookup()
		if !errors.Is(err, want.err) || took < want.least || took > want.least+mostLatency || err == nil && (address == r.moves) != want.right {
			t.Errorf("%s: address %d of %d, %v after %v", want.state, address, r.moves, err, took)
		}
	}
	if !c.broken {
		t.Error("a connection to an address outlived the move of the load balancer")
	}
	r.become(history.LinkCut, l.n.reports)
	l.w.k.After(write/4, func() { r.become(history.LinkOK, l.n.reports) })
	if _, took, err := lookup(); err != nil || took < write/2 || took > write/2+mostLatency {
		t.Errorf("an answer to the second query: %v after %v", err, took)
	}
}
