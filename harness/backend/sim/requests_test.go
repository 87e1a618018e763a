package sim

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	objects "github.com/kmsharness/kmsharness/harness/backend/sim/store"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/record/audit"
)

// clustered is a lab with the objects of a cluster, and a connection to its API server.
func clustered(t *testing.T) (*lab, *conn) {
	t.Helper()
	l := newLab(t)
	var err error
	if l.w.operator, err = operatorNamed(""); err == nil {
		err = l.w.populate()
	}
	if err != nil {
		t.Fatal(err)
	}
	l.started()
	l.w.committed()
	return l, l.w.connect(&conn{server: l.server})
}

// put applies a condition as some manager.
func (l *lab) put(c *conn, manager string, timeout time.Duration) (rep reply) {
	l.t.Helper()
	body := encode(newObject("operator.openshift.io/v1", l.w.operator.core.Kind, "cluster", map[string]any{"status": map[string]any{"conditions": []any{
		map[string]any{"type": manager, "status": "True", "reason": "R", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}}}}))
	l.until(func(done func()) {
		c.ask(request{user: "system:admin", verb: verbPatch, key: l.w.crKey(), subresource: "status", manager: manager, force: true,
			contentType: audit.ContentTypeApply, body: body, timeout: timeout}, func(r reply) { rep = r; done() })
	})
	return rep
}

// A request is worked on for as long as its client allows, and for 34 s if it says nothing; each has words of its own.
func TestTimeouts(t *testing.T) {
	for limit, want := range map[time.Duration]string{
		time.Second: "Timeout: request did not complete within the allotted timeout",
		0:           "Timeout: request did not complete within requested timeout - context deadline exceeded",
	} {
		l, c := clustered(t)
		expected := limit
		if limit == 0 {
			expected = defaultTimeout
		}
		l.n.stored.set(history.LinkCut, 0)
		began := l.w.k.Now()
		rep := l.put(c, "a", limit)
		if took := l.w.k.Now().Sub(began).Round(100 * time.Millisecond); rep.code != http.StatusGatewayTimeout || rep.text != want || took != expected {
			t.Errorf("limit %v: %d %s after %v, expected %s", limit, rep.code, rep.text, took, want)
		}
		l.n.stored.set(history.LinkOK, 0)
		if rep := l.put(c, "a", limit); rep.code != http.StatusOK {
			t.Errorf("after etcd was back: %+v", rep)
		}
	}
}

// A watch tells of every change after a version, once and in order, and can go on where it ended; one from before what is remembered
// is refused.
func TestWatches(t *testing.T) {
	l, c := clustered(t)
	l.server.lag = 20 * time.Millisecond
	start := l.w.store.Revision()
	var live, resumed []int64
	follow := func(since int64, into *[]int64) {
		c.watch(request{verb: verbWatch, key: l.w.crKey()}, since, func(e objects.Event) { *into = append(*into, e.Revision) }, func(error) {})
	}
	follow(start, &live)
	var want []int64
	for i := range 6 {
		want = append(want, l.put(c, fmt.Sprint("m", i), 0).version.Revision)
	}
	l.pass(time.Second)
	follow(want[2], &resumed)
	l.pass(time.Second)
	if !slices.Equal(live, want) || !slices.Equal(resumed, want[3:]) {
		t.Errorf("told of %v and %v, expected %v", live, resumed, want)
	}
	l.w.store.Compact(want[3])
	var refused error
	c.watch(request{verb: verbWatch, key: l.w.crKey()}, start, func(objects.Event) {}, func(err error) { refused = err })
	l.pass(time.Second)
	holds(t, "a watch from a version that is forgotten", refused, fmt.Sprintf("too old resource version: %d (%d)", start, want[3]))
}
