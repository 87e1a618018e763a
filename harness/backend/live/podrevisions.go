package live

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/kmsharness/kmsharness/operator/config"
	"github.com/kmsharness/kmsharness/operator/core"
	"github.com/kmsharness/kmsharness/operator/revision"
)

// content is what a revision of a pod is made of.
type content struct {
	plugins []revision.Plugin
	sockets []uint64 // of the reporter
	config  int      // revision of the encryption configuration, 0: none, and its text
	file    []byte
}

// configs are the plugins by keyID.
func (c content) configs() map[uint64]config.Plugin {
	all := map[uint64]config.Plugin{}
	for _, g := range c.plugins {
		all[g.KeyID] = g.Config
	}
	return all
}

// waiting are the plugins that cannot run in a pod that was made of the content.
func (c content) waiting(pod Pod) map[uint64]core.Waiting {
	all := map[uint64]core.Waiting{}
	for _, w := range pod.Waiting {
		for _, g := range c.plugins {
			if revision.SocketName(g.KeyID) == w.Plugin {
				all[g.KeyID] = core.Waiting{Config: g.Config, Reason: w.Reason}
			}
		}
	}
	return all
}

// sort puts the plugins in the order of their keys.
func (c content) sort() {
	slices.SortFunc(c.plugins, func(a, b revision.Plugin) int { return cmp.Compare(a.KeyID, b.KeyID) })
}

func (c content) clone() content {
	c.plugins, c.sockets = slices.Clone(c.plugins), slices.Clone(c.sockets)
	return c
}

func (c content) equal(other content) bool {
	return slices.Equal(c.plugins, other.plugins) && slices.Equal(c.sockets, other.sockets) && c.config == other.config && bytes.Equal(c.file, other.file)
}

// podRevisions are what is wanted of every node's pod, what each has, and the revisions that were made so far. It is safe for concurrent use.
type podRevisions struct {
	mu     sync.Mutex
	wanted map[string]content // by node
	has    map[string]content
	waits  map[string]map[uint64]core.Waiting // plugins that cannot run in the pod that a node has
	since  time.Time                          // when something was asked for that no pod has got yet
	asked  time.Time                          // when something was asked for last
	all    []content                          // of the revisions; the first has the number firstPod
	given  bool                               // revisions have the number of their encryption configuration: a whole operator makes them
}

const (
	// settle is how long nothing must be asked for before a revision is made: an operator asks for plugins, and, once they are there, for the rest.
	settle = 2 * time.Second
	// settled is when a revision is made although more is asked for: an operator that never stops is no reason to do nothing.
	settled = 5 * settle
	// firstPod is the revision of the pods that an operator finds, without plugins.
	firstPod = 1
)

func newPodRevisions() *podRevisions {
	return &podRevisions{wanted: map[string]content{}, has: map[string]content{}, waits: map[string]map[uint64]core.Waiting{}, all: []content{{}}}
}

// of is what is wanted of a node's pod.
func (r *podRevisions) of(name string) content {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.wanted[name].clone()
}

// plugins returns the plugins that the operator sees in a node's pod, and those that cannot run. The first are those that it has, with the settings that it
// has, and those that are wanted: the operator waits until a pod with the settings that are wanted, and without the plugins that are not, has taken its
// place.
func (r *podRevisions) plugins(name string) (all map[uint64]config.Plugin, waiting map[uint64]core.Waiting) {
	r.mu.Lock()
	defer r.mu.Unlock()
	all = r.wanted[name].configs()
	maps.Copy(all, r.has[name].configs())
	for id := range r.waits[name] {
		delete(all, id)
	}
	return all, maps.Clone(r.waits[name])
}

// loaded is the revision of the encryption configuration that a node's API server has, of which it says itself that it has loaded the revision said: that
// of the pod before until the next one is complete. A pod without a configuration, whose number was given, has nothing to load.
func (r *podRevisions) loaded(name string, said int) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	has := r.has[name]
	if r.given && has.config > 0 && has.file == nil {
		return has.config
	}
	return min(said, has.config)
}

// change changes what is wanted.
func (r *podRevisions) change(name string, now time.Time, change func(*content)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	next := r.wanted[name].clone()
	change(&next)
	if next.equal(r.wanted[name]) {
		return
	}
	if r.since.IsZero() {
		r.since = now
	}
	r.wanted[name], r.asked = next, now
}

// due are the nodes whose pods are not as is wanted, sorted; none as long as an operator is still asking, within bounds. While plugins cannot run on
// some nodes, their pods are the only ones that are replaced.
func (r *podRevisions) due(now time.Time) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.since.IsZero() && now.Sub(r.asked) < settle && now.Sub(r.since) < settled {
		return nil
	}
	names := slices.Sorted(maps.Keys(r.wanted))
	return slices.DeleteFunc(names, func(name string) bool {
		return r.has[name].equal(r.wanted[name]) || len(r.waits) > 0 && r.waits[name] == nil // others wait for it
	})
}

// next is what is wanted of a node's pod, and the number of the revision with it: of the first after the one that the node has, or of a new one.
func (r *podRevisions) next(name string) (content, int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	want, last := r.wanted[name].clone(), 0
	if r.given {
		return want, want.config
	}
	for at, c := range r.all {
		if c.equal(r.has[name]) {
			last = at
		}
	}
	for at := last + 1; at < len(r.all); at++ {
		if r.all[at].equal(want) {
			return want, firstPod + at
		}
	}
	r.all = append(r.all, want)
	return want, firstPod + len(r.all) - 1
}

// installed notes what a node's pod has, and which of its plugins cannot run.
func (r *podRevisions) installed(name string, c content, waiting map[uint64]core.Waiting) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.has[name], r.since = c, time.Time{}
	if delete(r.waits, name); len(waiting) > 0 {
		r.waits[name] = waiting
	}
}

// rollBack makes what a node's pod gets what is wanted of it, and gives the number of the newest revision of pods that has an encryption configuration, by
// its revision, or an older one.
func (r *podRevisions) rollBack(name string, config int, gets content) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.wanted[name] = gets
	for at, is := range slices.Backward(r.all) {
		if is.config <= config {
			return firstPod + at
		}
	}
	return firstPod
}

// begins notes what the pod of a node that comes has, and gives the number of the newest revision that is like it.
func (r *podRevisions) begins(name string, b beginning) int {
	c := content{plugins: slices.Clone(b.plugins), sockets: b.keyIDs(), config: b.revision, file: b.file}
	c.sort()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.wanted[name], r.has[name] = c, c
	for at, is := range slices.Backward(r.all) {
		if is.equal(c) {
			return firstPod + at
		}
	}
	r.all = append(r.all, c)
	return firstPod + len(r.all) - 1
}

// leaves forgets the pod of a node that is gone.
func (r *podRevisions) leaves(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.wanted, name)
	delete(r.has, name)
	delete(r.waits, name)
}
