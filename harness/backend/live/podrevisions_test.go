package live

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/operator/config"
	"github.com/kmsharness/kmsharness/operator/core"
	"github.com/kmsharness/kmsharness/operator/revision"
)

// What is asked for within a moment is one revision, and all nodes get the same.
func TestPodRevisions(t *testing.T) {
	r, now := newPodRevisions(), time.Unix(0, 0).Add(time.Hour)
	plugin := func(id uint64) func(*content) {
		return func(c *content) { c.plugins, c.sockets = []revision.Plugin{{KeyID: id}}, []uint64{id} }
	}
	file := func(n int) func(*content) {
		return func(c *content) { c.config, c.file = n, []byte{byte(n)} }
	}
	due := func(want ...string) {
		t.Helper()
		if got := r.due(now); !slices.Equal(got, want) {
			t.Errorf("due are %v, want %v", got, want)
		}
	}
	install := func(name string, want int) {
		t.Helper()
		c, number := r.next(name)
		if r.installed(name, c, nil); number != want {
			t.Errorf("%s gets revision %d, want %d", name, number, want)
		}
	}
	due()
	r.change("cp-2", now, plugin(1))
	r.change("cp-1", now, plugin(1))
	now = now.Add(settle / 2)
	r.change("cp-1", now, file(1))
	now = now.Add(settle / 2)
	due()
	r.change("cp-2", now, file(1))
	r.change("cp-2", now, file(1))
	now = now.Add(settle)
	due("cp-1", "cp-2")
	if loaded := r.loaded("cp-1", 1); loaded != 0 {
		t.Errorf("a pod that is not complete has loaded revision %d", loaded)
	}
	install("cp-1", 2)
	for said, want := range []int{0, 1, 1} {
		if loaded := r.loaded("cp-1", said); loaded != want {
			t.Errorf("an API server that says %d has loaded revision %d, expected %d", said, loaded, want)
		}
	}
	due("cp-2")
	r.change("cp-1", now, file(2))
	now = now.Add(settle)
	install("cp-2", 2)
	install("cp-1", 3)
	r.change("cp-1", now, file(1))
	now = now.Add(settle)
	install("cp-1", 4) // what was before is no way back: it is another revision
	due()
	if number := r.begins("cp-3", beginning{plugins: []revision.Plugin{{KeyID: 1}}, revision: 1, file: []byte{1}}); number != 4 {
		t.Errorf("a node that comes has revision %d", number)
	}
	due()
	r.change("cp-3", now, plugin(2))
	now = now.Add(settle)
	due("cp-3")
	r.leaves("cp-3")
	due()
	for at := range 8 { // an operator that asks for ever
		r.change("cp-1", now, file(100+at))
		now = now.Add(settle - 1)
		if got, bounded := len(r.due(now)) > 0, now.Sub(r.since) >= settled; got != bounded {
			t.Errorf("due %t, asked for since %v", got, now.Sub(r.since))
		}
	}
	due("cp-1")
}

// A pod that is rolled back has an older number, and stays until something is asked for.
func TestPodRevisionsRolledBack(t *testing.T) {
	r, now := newPodRevisions(), time.Unix(0, 0).Add(time.Hour)
	file := func(n int) content { return content{config: n, file: []byte{byte(n)}} }
	for n := range 3 {
		r.change("cp-1", now, func(c *content) { *c = file(n + 1) })
		c, _ := r.next("cp-1")
		r.installed("cp-1", c, nil)
	}
	if number := r.rollBack("cp-1", 2, file(2)); number != firstPod+2 {
		t.Errorf("revision %d", number)
	}
	r.installed("cp-1", file(2), nil)
	if due := r.due(now.Add(settled)); len(due) > 0 {
		t.Errorf("due are %v", due)
	}
	r.change("cp-1", now, func(c *content) { *c = file(3) })
	if _, number := r.next("cp-1"); number != firstPod+3 {
		t.Errorf("it goes forward to revision %d", number)
	}
}

// A plugin that is asked for counts as there. One that runs keeps its settings until its pod has been replaced, and one that is to end
// runs until then.
func TestPluginsOfPodRevisions(t *testing.T) {
	r, now := newPodRevisions(), time.Unix(0, 0)
	ask := func(plugins ...revision.Plugin) {
		r.change("cp-1", now, func(c *content) { c.plugins = plugins })
	}
	settings := func(hash string) config.Plugin { return config.Plugin{Content: hash} }
	expect := func(what string, want map[uint64]config.Plugin) {
		t.Helper()
		if got, _ := r.plugins("cp-1"); !maps.Equal(got, want) {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	ask(revision.Plugin{KeyID: 1, Config: settings("a")})
	expect("asked for", map[uint64]config.Plugin{1: settings("a")})
	c, _ := r.next("cp-1")
	r.installed("cp-1", c, nil)
	ask(revision.Plugin{KeyID: 1, Config: settings("b")}, revision.Plugin{KeyID: 2})
	expect("other settings, and another one", map[uint64]config.Plugin{1: settings("a"), 2: {}})
	c, _ = r.next("cp-1")
	r.installed("cp-1", c, nil)
	expect("replaced", map[uint64]config.Plugin{1: settings("b"), 2: {}})
	ask(revision.Plugin{KeyID: 2})
	expect("to end", map[uint64]config.Plugin{1: settings("b"), 2: {}})
	c, _ = r.next("cp-1")
	r.installed("cp-1", c, nil)
	expect("ended", map[uint64]config.Plugin{2: {}})
}

// While a plugin cannot run on a node, the pods of the others stay as they are. Its own is replaced when something else is wanted.
func TestPodRevisionsWait(t *testing.T) {
	r, now := newPodRevisions(), time.Unix(0, 0).Add(time.Hour)
	bad, good := config.Plugin{Image: "bad"}, config.Plugin{Image: "good"}
	due := func(what string, want ...string) {
		t.Helper()
		now = now.Add(settled)
		if got := r.due(now); !slices.Equal(got, want) {
			t.Errorf("%s: due are %v, want %v", what, got, want)
		}
	}
	ask := func(g config.Plugin, names ...string) {
		for _, name := range names {
			r.change(name, now, func(c *content) { c.plugins = []revision.Plugin{{KeyID: 1, Config: g}} })
		}
	}
	install := func(name string, pod Pod) {
		c, _ := r.next(name)
		r.installed(name, c, c.waiting(pod))
	}
	ask(bad, "cp-1", "cp-2", "cp-3")
	due("asked for", "cp-1", "cp-2", "cp-3")
	install("cp-1", Pod{})
	install("cp-2", Pod{Waiting: []WaitingContainer{{Plugin: revision.SocketName(1), Reason: "CrashLoopBackOff"}}})
	due("it waits")
	plugins, waiting := r.plugins("cp-2")
	if len(plugins) != 0 || len(waiting) != 1 || waiting[1] != (core.Waiting{Config: bad, Reason: "CrashLoopBackOff"}) {
		t.Errorf("plugins %v, waiting %v", plugins, waiting)
	}
	ask(good, "cp-1", "cp-2", "cp-3")
	due("another image", "cp-2")
	install("cp-2", Pod{})
	due("mended", "cp-1", "cp-3")
	if plugins, waiting := r.plugins("cp-2"); plugins[1] != good || len(waiting) != 0 {
		t.Errorf("plugins %v, waiting %v", plugins, waiting)
	}
	install("cp-1", Pod{Waiting: []WaitingContainer{{Plugin: "1"}}})
	r.leaves("cp-1")
	due("the node that waits has gone", "cp-3")
}

// A whole operator numbers the revisions. One without an encryption configuration is in force when the pod has it.
func TestGivenRevisions(t *testing.T) {
	r, now := newPodRevisions(), time.Unix(0, 0)
	r.given = true
	for _, c := range []struct {
		number       int
		file         []byte
		said, loaded int
	}{{2, nil, 0, 2}, {5, []byte("file"), 0, 0}, {6, []byte("file"), 6, 6}} {
		r.change("cp-1", now, func(is *content) { is.config, is.file = c.number, c.file })
		now = now.Add(settled)
		if due := r.due(now); len(due) != 1 {
			t.Errorf("revision %d: due are %v", c.number, due)
		}
		want, number := r.next("cp-1")
		if r.installed("cp-1", want, nil); number != c.number {
			t.Errorf("revision %d is number %d", c.number, number)
		}
		if loaded := r.loaded("cp-1", c.said); loaded != c.loaded {
			t.Errorf("revision %d: loaded is %d, expected %d", c.number, loaded, c.loaded)
		}
	}
}
