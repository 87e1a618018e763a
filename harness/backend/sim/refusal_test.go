package sim

import (
	"errors"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/contract"
	objects "github.com/kmsharness/kmsharness/harness/backend/sim/store"
	"github.com/kmsharness/kmsharness/harness/history"
)

// askAs makes a request as somebody.
func (l *lab) askAs(c *conn, user string, r request) (rep reply) {
	l.t.Helper()
	r.user = user
	l.until(func(done func()) { c.ask(r, func(got reply) { rep = got; done() }) })
	return rep
}

func (l *lab) refuses(what history.Refusal, requests int, lasting time.Duration) {
	what.Code = history.RefusalCode(what.Mode)
	l.w.beginRefusal(&refusal{what: what, left: requests}, lasting)
}

// TestRefusalsSayWhatAnAPIServerSays: each with its code and its words, to those whom it is about and to nobody else.
func TestRefusalsSayWhatAnAPIServerSays(t *testing.T) {
	l, c := clustered(t)
	read, write := request{verb: verbGet, key: l.w.crKey()}, request{verb: verbPatch, key: l.w.crKey(), subresource: "status"}
	for mode, want := range map[string]string{
		history.RefuseForbidden:       `kubeapiservers.operator.openshift.io "cluster" is forbidden: User "system:kms-health-aggregator" cannot get resource "kubeapiservers" in API group "operator.openshift.io" at the cluster scope`,
		history.RefuseTooManyRequests: "Too many requests, please try again later.",
		history.RefuseLeaderChanged:   "etcdserver: leader changed",
		history.RefuseUnavailable:     "the server is currently unable to handle the request",
		history.RefuseTimeout:         "Timeout: request did not complete within requested timeout - context deadline exceeded",
	} {
		l.refuses(history.Refusal{Role: history.RoleAggregator, Mode: mode, RetryAfter: time.Second}, -1, 0)
		rep := l.askAs(c, contract.AggregatorIdentity, read)
		if rep.code != history.RefusalCode(mode) || rep.text != want || rep.again != time.Second {
			t.Errorf("%s: %d %q, again after %v; expected %d %q after 1s", mode, rep.code, rep.text, rep.again, history.RefusalCode(mode), want)
		}
		for _, other := range []string{contract.ReporterIdentity("cp-1"), adminUser} {
			if rep := l.askAs(c, other, read); rep.code != http.StatusOK {
				t.Errorf("%s: %s got %d %s, expected that nobody else is refused", mode, other, rep.code, rep.text)
			}
		}
		l.w.endRefusals(func(*refusal) bool { return true })
		if rep := l.askAs(c, contract.AggregatorIdentity, read); rep.code != http.StatusOK {
			t.Errorf("%s, ended: %d %s", mode, rep.code, rep.text)
		}
	}
	l.refuses(history.Refusal{Mode: history.RefuseWebhookTimeout}, -1, 0)
	if rep := l.askAs(c, contract.AggregatorIdentity, read); rep.code != http.StatusOK {
		t.Errorf("a read beside a webhook: %d %s, expected that admission does not look at it", rep.code, rep.text)
	}
	if rep := l.askAs(c, contract.AggregatorIdentity, write); rep.code != http.StatusInternalServerError {
		t.Errorf("a write beside a webhook that does not answer: %d %s, expected 500", rep.code, rep.text)
	}
}

// TestRefusalsEnd: by their number, by their time, and they are of one verb and one API server if they say so.
func TestRefusalsEnd(t *testing.T) {
	l, c := clustered(t)
	read := request{verb: verbGet, key: l.w.crKey()}
	code := func() int { return l.askAs(c, contract.AggregatorIdentity, read).code }
	l.refuses(history.Refusal{Mode: history.RefuseUnavailable}, 2, 0)
	if got := []int{code(), code(), code()}; !slices.Equal(got, []int{503, 503, 200}) {
		t.Errorf("two requests: answered %v, expected 503, 503, 200", got)
	}
	l.refuses(history.Refusal{Mode: history.RefuseUnavailable}, -1, time.Second)
	first := code()
	l.pass(time.Second)
	if second := code(); first != 503 || second != 200 {
		t.Errorf("for a second: answered %d and then %d, expected 503 and 200", first, second)
	}
	for _, other := range []history.Refusal{{Mode: history.RefuseUnavailable, Verb: verbPatch}, {Mode: history.RefuseUnavailable, Node: "cp-2"}} {
		l.refuses(other, -1, 0)
		if got := code(); got != 200 {
			t.Errorf("%+v: answered %d, expected that it is about others", other, got)
		}
	}
	over := 0
	for _, e := range l.w.log.Events() {
		if e.Refusal != nil && e.Refusal.Over {
			over++
		}
	}
	if over != 2 {
		t.Errorf("the history says of %d refusals that they are over, expected 2", over)
	}
}

// TestRefusedWatch: a watch that begins is refused like any request, and one that is open goes on.
func TestRefusedWatch(t *testing.T) {
	l, c := clustered(t)
	var configured []int64
	watch := func() (failed error) {
		c.watch(request{user: contract.AggregatorIdentity, verb: verbWatch, key: l.w.crKey()}, l.w.store.Revision(),
			func(e objects.Event) { configured = append(configured, e.Revision) }, func(err error) { failed = err })
		l.pass(time.Second)
		return failed
	}
	if err := watch(); err != nil {
		t.Fatal(err)
	}
	l.refuses(history.Refusal{Mode: history.RefuseForbidden}, -1, 0)
	var refused *refusedError
	if err := watch(); !errors.As(err, &refused) || refused.code != http.StatusForbidden {
		t.Errorf("a watch without permission: %v, expected 403", err)
	}
	l.put(c, "a", 0)
	l.pass(time.Second)
	if len(configured) != 1 {
		t.Errorf("the open watch told of %d changes, expected 1", len(configured))
	}
}

// TestWatchesThatAreLate: each change comes so much later, in order, and what is left at once when they no longer are.
func TestWatchesThatAreLate(t *testing.T) {
	l, c := clustered(t)
	var configured []int64
	c.watch(request{verb: verbWatch, key: l.w.crKey()}, l.w.store.Revision(), func(e objects.Event) { configured = append(configured, e.Revision) }, func(error) {})
	l.pass(time.Second)
	l.w.beLate("", 3*time.Second)
	want := []int64{l.put(c, "a", 0).version.Revision}
	l.pass(2 * time.Second)
	want = append(want, l.put(c, "b", 0).version.Revision)
	if l.pass(900 * time.Millisecond); len(configured) != 0 {
		t.Errorf("told of %v after 2.9s, expected nothing within 3s", configured)
	}
	if l.pass(200 * time.Millisecond); !slices.Equal(configured, want[:1]) {
		t.Errorf("told of %v after 3.1s, expected %v", configured, want[:1])
	}
	l.w.beLate("cp-1", 0)
	if l.pass(10 * time.Millisecond); !slices.Equal(configured, want) {
		t.Errorf("told of %v when watches were no longer late, expected %v", configured, want)
	}
}

// TestWatchesThatAreEnded: whoever watches is told why.
func TestWatchesThatAreEnded(t *testing.T) {
	for _, why := range []error{errClosed, errExpired} {
		l, c := clustered(t)
		var ended error
		c.watch(request{verb: verbWatch, key: l.w.crKey()}, l.w.store.Revision(), func(objects.Event) {}, func(err error) { ended = err })
		l.pass(time.Second)
		l.server.endWatches(why)
		if l.pass(10 * time.Millisecond); !errors.Is(ended, why) {
			t.Errorf("ended with %v, expected %v", ended, why)
		}
	}
}

// TestRetryAfterIsKept: an aggregator asks again when it was told to, until its deadline.
func TestRetryAfterIsKept(t *testing.T) {
	l, c := clustered(t)
	a := newAggregator(l.w, 1, 1)
	a.phase = running // and nothing else of it: neither mirrors nor pulses
	a.c = c
	l.refuses(history.Refusal{Mode: history.RefuseTooManyRequests, RetryAfter: 2 * time.Second}, -1, 0)
	for _, x := range []struct {
		r     request
		after time.Duration
		want  error
	}{{request{verb: verbGet, key: l.w.crKey()}, requestTimeout, errTimeout}} {
		began := l.w.k.Now()
		var rep reply
		l.until(func(done func()) { a.ask(x.r, func(got reply) { rep = got; done() }) })
		if took := l.w.k.Now().Sub(began).Round(100 * time.Millisecond); !errors.Is(rep.err, x.want) || took != x.after {
			t.Errorf("%+v after %v, expected %v after %v", rep, took, x.want, x.after)
		}
	}
	l.w.k.After(time.Second, func() { l.w.endRefusals(func(*refusal) bool { return true }) })
	began := l.w.k.Now()
	if rep := l.asksAs(a, request{verb: verbGet, key: l.w.crKey()}); rep.code != http.StatusOK || l.w.k.Now().Sub(began).Round(100*time.Millisecond) != 2*time.Second {
		t.Errorf("%d after %v, expected 200 after 2s", rep.code, l.w.k.Now().Sub(began))
	}
}

func (l *lab) asksAs(a *aggregator, r request) (rep reply) {
	l.t.Helper()
	l.until(func(done func()) { a.ask(r, func(got reply) { rep = got; done() }) })
	return rep
}
