package sim

import (
	"sync"
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/ci/crds"
	"github.com/kmsharness/kmsharness/fakeplugin/fault"
	objects "github.com/kmsharness/kmsharness/harness/backend/sim/store"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/operator/encryption"
)

// labTypes are read once.
var labTypes = sync.OnceValues(func() (*objects.Types, error) { return objects.LoadTypes(crds.TechPreview) })

// lab is one API server with its plugin, and nobody who reports.
type lab struct {
	t *testing.T
	w *world
	n *node
	*server
	plugin *kmsPlugin
}

func newLab(t *testing.T, keyIDs ...string) *lab {
	t.Helper()
	types, err := labTypes()
	if err != nil {
		t.Fatal(err)
	}
	if len(keyIDs) == 0 {
		keyIDs = []string{"1"}
	}
	b := New(Options{})
	w, err := newWorld(1, history.NewLog(nil), b.Timing(), objects.New(types, objects.Options{SSA: objects.Model}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.k.Close)
	w.keyIDs = keyIDs
	n := newNode(w, "cp-1", keyIDs)
	n.server.envelope.wanted = encryption.Of(encryption.KMS, keyIDs...)
	w.addNode(n)
	for _, p := range []*proc{&w.etcd.proc, &w.kms.proc} {
		p.existed()
	}
	for _, p := range n.plugins {
		p.existed()
	}
	return &lab{t: t, w: w, n: n, server: n.server, plugin: n.plugins[0]}
}

// started is a lab whose API server runs, too.
func (l *lab) started() *lab {
	l.existed()
	l.pass(10 * time.Millisecond)
	return l
}

func (l *lab) pass(d time.Duration) { l.w.k.RunUntil(l.w.k.Now().Add(d)) }

// until lets time pass until something is done.
func (l *lab) until(start func(done func())) {
	l.t.Helper()
	if err := l.w.k.Suspend(start); err != nil {
		l.t.Fatal(err)
	}
}

func (l *lab) write(name, value string) (err error) {
	l.t.Helper()
	l.until(func(done func()) { l.store(name, []byte(value), func(e error) { err = e; done() }) })
	return err
}

func (l *lab) same(name, value string) (revision int64) {
	l.t.Helper()
	var err error
	l.until(func(done func()) {
		l.update(name, []byte(value), func(r int64, e error) { revision, err = r, e; done() })
	})
	if err != nil {
		l.t.Fatalf("update %s: %v", name, err)
	}
	return revision
}

func (l *lab) get(name string) (err error) {
	l.t.Helper()
	l.until(func(done func()) { l.load(name, func(_ *secret, e error) { err = e; done() }) })
	return err
}

// health is what /healthz/kms-providers says; empty if all is well.
func (l *lab) health() (text string) {
	l.t.Helper()
	l.until(func(done func()) {
		l.envelope.loaded.check(func(err error) {
			if err != nil {
				text = "internal server error: " + err.Error()
			}
			done()
		})
	})
	return text
}

func (l *lab) inject(name string, params map[string]any) {
	l.t.Helper()
	f, err := fault.Parse(name, params)
	if err == nil {
		err = l.plugin.inject(f)
	}
	if err != nil {
		l.t.Fatal(err)
	}
}

func (l *lab) release(names ...string) {
	l.plugin.release(func(a fault.Active) bool {
		for _, n := range names {
			if a.Fault.Name == n {
				return true
			}
		}
		return len(names) == 0
	})
}

// calls is how many calls of a method the plugins have answered.
func (l *lab) calls(method fault.Method) (n int) {
	for _, e := range l.w.log.Events() {
		if c := e.Call; c != nil && c.Method == string(method) {
			n++
		}
	}
	return n
}
