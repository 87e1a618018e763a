package virtual

import (
	"crypto/tls"
	"net/http"
	"strconv"
	"sync"
	"time"
	"unsafe"

	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/clock"

	"github.com/kmsharness/kmsharness/altsvc"
	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/cluster/virtual/apiserver"
	"github.com/kmsharness/kmsharness/harness/cluster/virtual/bubble"
	"github.com/kmsharness/kmsharness/harness/cluster/virtual/store"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/record/watch"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

func (g *ground) Refuse(what history.Refusal, count int, lasting time.Duration, over func(history.Refusal)) {
	g.cluster.refused.begin(&refusal{what: what, left: count, over: over}, lasting)
}

func (g *ground) Permit(role, object, node string) {
	g.cluster.refused.end(func(f *refusal) bool {
		return (role == "" || role == f.what.Role) && (object == "" || object == f.what.Object) && (node == "" || node == f.what.Node)
	})
}

func (g *ground) DelayWatches(node string, late time.Duration) {
	for _, s := range g.cluster.all() {
		if node == "" || s.node == node {
			s.watches.Delay(late)
		}
	}
}

func (g *ground) EndWatches(node string, expired bool) {
	for _, s := range g.cluster.all() {
		if node == "" || s.node == node {
			s.watches.End(expired)
		}
	}
}

// Observe hands over each state of some objects from the store itself: no watch can lose one, and none costs time.
func (g *ground) Observe(to *watch.Sequence, targets []watch.Target) {
	of := map[store.Key]watch.Target{}
	for _, t := range targets {
		of[store.Key{Resource: t.GVR, Name: t.Name}] = t
	}
	g.cluster.objects.Observe(func(e store.Event) {
		t, ok := of[e.Version.Key]
		switch {
		case !ok:
		case e.Type == apiwatch.Deleted:
			to.Absent(t, strconv.FormatInt(e.Revision, 10), time.Now())
		default:
			to.Present(t, e.Version.Shown(), time.Now())
		}
	})
}

func (g *ground) Changed(path string) bool { return g.machine.files.Changed(path) }

// ofAggregator reports whether a request is one of the aggregators'.
func ofAggregator(q *apiserver.Request) bool { return q.User.GetName() == contract.AggregatorIdentity }

// clocks has how far the clocks of machines are ahead of the true time, by role and node. Aggregators have one clock,
// reporters that of their node.
type clocks struct {
	mu    sync.Mutex
	ahead map[[2]string]time.Duration
}

func (m *machine) SetClock(role, node string, ahead time.Duration) {
	m.clocks.mu.Lock()
	defer m.clocks.mu.Unlock()
	if m.clocks.ahead == nil {
		m.clocks.ahead = map[[2]string]time.Duration{}
	}
	m.clocks.ahead[[2]string{role, node}] = ahead
}

// clockOf is the clock that a program reads. A plugin has the true time: its journal is what others are judged by.
func (m *machine) clockOf(p history.Process) clock.WithTicker {
	switch p.Role {
	case history.RolePlugin:
		return clock.RealClock{}
	case history.RoleAggregator:
		return wrongClock{of: m, key: [2]string{p.Role, ""}}
	}
	return wrongClock{of: m, key: [2]string{"", p.Node}}
}

// wrongClock has a time of its own; timers and tickers go by the true one.
type wrongClock struct {
	clock.RealClock
	of  *machine
	key [2]string
}

func (c wrongClock) Now() time.Time {
	c.of.clocks.mu.Lock()
	defer c.of.clocks.mu.Unlock()
	return setAhead(time.Now(), c.of.clocks.ahead[c.key])
}

// reading is what a time.Time consists of that was read from the monotonic clock, too.
type reading struct {
	wall     uint64 // a one, 33 bits of seconds since 1885, 30 bits of nanoseconds
	measured int64  // nanoseconds of the monotonic clock
	_        *time.Location
}

// setAhead is now on a machine whose wall clock was set. Its monotonic clock, by which Go measures how much later one time is than another, never
// is. In a bubble time.Now does not read it, and no method of time.Time adds that.
func setAhead(now time.Time, ahead time.Duration) time.Time {
	wall := now.Add(ahead)
	since := wall.Unix() - time.Date(1885, 1, 1, 0, 0, 0, 0, time.UTC).Unix()
	out := (*reading)(unsafe.Pointer(&wall))
	out.wall, out.measured = 1<<63|uint64(since)<<30|uint64(wall.Nanosecond()), int64(now.Sub(bubble.Begin()))
	return wall
}

func (c wrongClock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

// Serve implements cluster.Memory.
func (g *ground) Serve(node, mode string) {
	for _, s := range g.cluster.all() {
		if node == "" || s.node == node {
			s.serving.Store(mode)
		}
	}
}

// servesAs reports whether a mode of scenario.Serving is in force.
func (s *server) servesAs(mode string) bool { return s.serving.Load() == mode }

// secure is how a server speaks TLS: the mode counts at each handshake.
func (s *server) secure() *tls.Config {
	own := s.cluster.identities.Serving(s.host, s.aggregated == nil && s.cluster.addressed, s.node, "kubernetes", "kubernetes.default", "kubernetes.default.svc")
	own.NextProtos = []string{"h2", "http/1.1"}
	old, foreign, out := own.Clone(), own.Clone(), own.Clone()
	old.NextProtos = []string{"http/1.1"}
	foreign.GetCertificate = func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
		if hello.ServerName != altsvc.DefaultAuthority {
			return own.GetCertificate(hello)
		}
		return s.cluster.identities.Foreign(s.host, hello.ServerName)
	}
	out.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		switch {
		case s.servesAs(scenario.ServingHTTP1):
			return old, nil
		case s.servesAs(scenario.ServingForeign):
			return foreign, nil
		}
		return nil, nil
	}
	return out
}

// advertising is next, which tells clients of other API servers unless it is not to.
func (s *server) advertising(next http.Handler) http.Handler {
	advertised := s.cluster.advertising(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.servesAs(scenario.ServingUnadvertised) {
			if change := s.cluster.altSvc; change != nil && change("") != "" {
				w.Header().Set(altSvcHeader, change(""))
			}
			next.ServeHTTP(w, r)
			return
		}
		advertised.ServeHTTP(w, r)
	})
}
