package sim

import (
	"net/http"
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/harness/history"
)

// flown is a lab with a request under way that writes.
type flown struct {
	*lab
	before   int64 // revision
	began    time.Time
	limited  bool
	answers  []reply
	answered time.Time
}

func flying(t *testing.T) *flown {
	t.Helper()
	l, _ := clustered(t)
	l.w.balancer.existed()
	c := l.w.connect(&conn{links: []*link{l.w.front, l.n.balanced}, server: l.server})
	f := &flown{lab: l, before: l.w.store.Revision(), began: l.w.k.Now()}
	u := newObject("coordination.k8s.io/v1", "Lease", leaseKey().Name, map[string]any{"spec": map[string]any{"holderIdentity": "me"}})
	u.SetNamespace(leaseKey().Namespace)
	r := request{user: "system:kms-health-aggregator", verb: verbCreate, key: leaseKey(), parsed: &parsed{done: true, object: u}}
	if !c.fly(r, time.Minute, asking{func() { f.limited = true }, func(rep reply) { f.answers, f.answered = append(f.answers, rep), l.w.k.Now() }}) {
		t.Fatal("a way on which nothing is wrong is not clear")
	}
	return f
}

// asking is an inquirer in functions.
type asking struct {
	late func()
	told func(reply)
}

func (a asking) limited()      { a.late() }
func (a asking) end(rep reply) { a.told(rep) }

func (f *flown) made() bool { return f.w.store.Revision() > f.before }

// lines are those of the audit log about it.
func (f *flown) lines() (out []*history.Request) {
	for _, e := range f.w.log.Events() {
		if e.Request != nil && e.Request.Name == leaseKey().Name {
			out = append(out, e.Request)
		}
	}
	return out
}

// longestFlight is both links there and back, the API server, and etcd.
const longestFlight = 6*mostLatency + mostServe + mostEtcd

// moments are instants of a flight, close enough that each hop has some.
func moments() (out []time.Duration) {
	for at := time.Duration(0); at < longestFlight; at += 60 * time.Microsecond {
		out = append(out, at)
	}
	return out
}

// Wherever a flight lands when nothing has changed after all, it is made once, answered once, logged once, and in time.
func TestFlightGoesOnWhereItLands(t *testing.T) {
	for _, at := range moments() {
		f := flying(t)
		f.pass(at)
		underWay := len(f.w.flights) > 0
		f.w.land()
		f.pass(time.Second)
		lines := f.lines()
		if len(f.answers) != 1 || f.answers[0].code != http.StatusCreated || !f.made() || len(lines) != 1 || f.limited != underWay {
			t.Fatalf("landed after %v: answers %+v, made %v, %d lines, limited %v", at, f.answers, f.made(), len(lines), f.limited)
		}
		if took := f.answered.Sub(f.began); took > longestFlight+leastLatency || !lines[0].Received.Before(lines[0].Completed) || lines[0].Received.Before(f.began) {
			t.Errorf("landed after %v: answered after %v, logged from %v to %v", at, took, lines[0].Received, lines[0].Completed)
		}
	}
}

// What a way depends on stops a flight like every other request, and lets it go on when it is well again. One that did not land
// would be made and answered all the same.
func TestFlightIsStopped(t *testing.T) {
	for what, c := range map[string]struct{ stop, heal func(*flown) }{
		"etcd stands still":            {func(f *flown) { f.w.etcd.pause() }, func(f *flown) { f.w.etcd.resume() }},
		"etcd is killed":               {func(f *flown) { f.w.etcd.end(history.ProcessKilled, "") }, func(f *flown) { f.w.etcd.start(func() {}) }},
		"no way to etcd":               {func(f *flown) { f.n.stored.set(history.LinkCut, 0) }, func(f *flown) { f.n.stored.set(history.LinkOK, 0) }},
		"no way to the API server":     {func(f *flown) { f.n.balanced.set(history.LinkCut, 0) }, func(f *flown) { f.n.balanced.set(history.LinkOK, 0) }},
		"the API server stands still":  {func(f *flown) { f.server.pause() }, func(f *flown) { f.server.resume() }},
		"another one's links are slow": {func(f *flown) { newLink(f.w, "a", "b", "").set(history.LinkSlow, time.Second) }, func(*flown) {}},
	} {
		stopped, not := 0, 0
		for _, at := range moments() {
			f := flying(t)
			f.pass(at)
			c.stop(f)
			f.pass(mostLatency + time.Microsecond) // what etcd has answered may still arrive
			made, answers := f.made(), len(f.answers)
			f.pass(3 * time.Second)
			if answers == 0 && len(f.answers) == 0 {
				stopped++
			} else {
				not++
			}
			if what != "another one's links are slow" && (f.made() != made && what != "no way to the API server") {
				t.Fatalf("%s after %v: it was made meanwhile", what, at)
			}
			c.heal(f)
			f.pass(5 * time.Second)
			if len(f.answers) != 1 || f.answers[0].err == nil && !f.made() {
				t.Fatalf("%s after %v: answers %+v, made %v", what, at, f.answers, f.made())
			}
		}
		if want := what != "another one's links are slow"; (stopped > 0) != want || not == 0 {
			t.Errorf("%s: %d flights were stopped and %d not, expected some of each: %v", what, stopped, not, want)
		}
	}
}

// An API server that ends while it has a flight answers nobody, and its client learns of it once.
func TestFlightToAnAPIServerThatEnds(t *testing.T) {
	for _, at := range moments() {
		f := flying(t)
		f.pass(at)
		f.server.end(history.ProcessKilled, "")
		f.pass(time.Minute)
		if len(f.answers) != 1 || f.answers[0].err != nil && f.answers[0].err.Error() != errReset.Error() {
			t.Fatalf("killed after %v: answers %+v", at, f.answers)
		}
	}
}

// Where something is wrong nothing flies, and what the API server's processors work out does not.
func TestNothingFliesOnABadWay(t *testing.T) {
	l, c := clustered(t)
	c.links = []*link{l.w.front}
	get := request{user: "system:admin", verb: verbGet, key: l.w.crKey()}
	flies := func(r request) bool { return c.fly(r, time.Minute, asking{func() {}, func(reply) {}}) }
	if !flies(get) {
		t.Error("a clear way is not used")
	}
	if flies(request{user: "system:admin", verb: verbPatch, contentType: "application/json-patch+json", key: l.w.crKey()}) {
		t.Error("a patch flies")
	}
	if flies(request{user: "system:kms-health-aggregator", verb: verbDelete, key: l.w.crKey()}) {
		t.Error("what is forbidden flies")
	}
	for i, wrong := range []func(){
		func() { l.w.front.set(history.LinkCut, 0) },
		func() { l.w.front.set(history.LinkOK, 0); l.w.etcd.pause() },
		func() { l.w.etcd.resume(); l.server.pause() },
	} {
		if wrong(); flies(get) {
			t.Errorf("wrong thing %d: a bad way is used", i)
		}
	}
}
