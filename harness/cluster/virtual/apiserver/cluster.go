package apiserver

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kmsharness/kmsharness/harness/cluster/virtual/store"
)

// keptEvents is how many changes a watch can go back. A watch from before that gets 410 Gone and lists again. etcd keeps
// those of five minutes (--etcd-compaction-interval).
const keptEvents = 2000

// Cluster is what all API servers of a control plane share: the objects, and, of those that are encrypted, the bytes
// that etcd has. Objects are kept decoded, because a run reads them far more often than it writes. It is safe for
// concurrent use.
type Cluster struct {
	types *store.Types

	mu      sync.Mutex
	store   *store.Store
	stored  map[store.Key][]byte
	changed chan struct{}     // is closed by the next change
	newest  map[string]int64  // revision of the newest change of an object of a group
	observe func(store.Event) // nil, or what learns of each change

	texts struct {
		sync.Mutex
		of map[textOf]json.RawMessage
	}
}

// NewCluster is one with nothing in it. It is made in the bubble in which it is used.
func NewCluster(types *store.Types) *Cluster {
	c := &Cluster{types: types, store: store.New(types), stored: map[store.Key][]byte{}, changed: make(chan struct{}), newest: map[string]int64{}}
	c.texts.of = map[textOf]json.RawMessage{}
	return c
}

// Object is a copy of an object, past every API server; nil when there is none.
func (c *Cluster) Object(k store.Key) *unstructured.Unstructured {
	c.mu.Lock()
	defer c.mu.Unlock()
	if v, err := c.store.Get(k); err == nil {
		return v.Object()
	}
	return nil
}

// Stored is what etcd has under an object's key: the ciphertext of one that is encrypted, and nil of any other.
func (c *Cluster) Stored(k store.Key) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stored[k]
}

// Newest is the revision of the newest change of an object of a group; 0 if there was none.
func (c *Cluster) Newest(group string) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.newest[group]
}

// Objects are copies of all objects of a group.
func (c *Cluster) Objects(group string) (out []*unstructured.Unstructured) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, t := range c.types.All() {
		if t.Resource.Group != group {
			continue
		}
		all, _, _ := c.store.List(t.Resource, "") // the store has the type
		for _, v := range all {
			out = append(out, v.Object())
		}
	}
	return out
}

// InEtcd are the objects of a group that etcd has under a key, or, with an end, from that key up to the end.
func (c *Cluster) InEtcd(registry, group, from, end string) (out []*store.Version) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, t := range c.types.All() {
		if t.Resource.Group != group {
			continue
		}
		if end == "" {
			if v := c.under(registry, t.Resource, from); v != nil {
				out = append(out, v)
			}
			continue
		}
		all, _, _ := c.store.List(t.Resource, "") // the store has the type
		for _, v := range all {
			if key := EtcdKey(registry, v.Key); key >= from && key < end {
				out = append(out, v)
			}
		}
	}
	return out
}

// Kept is an object as etcd has it. Stored is nil of one that is not encrypted.
type Kept struct {
	Version *store.Version
	Stored  []byte
}

// Keep is what etcd has of a group from a key up to an end.
func (c *Cluster) Keep(registry, group, from, end string) (all []Kept) {
	for _, v := range c.InEtcd(registry, group, from, end) {
		all = append(all, Kept{v, c.Stored(v.Key)})
	}
	return all
}

// Restore makes it so that etcd has what was kept, and of the same keys nothing else, past every API server.
func (c *Cluster) Restore(registry, group, from, end string, all []Kept) error {
	late := c.InEtcd(registry, group, from, end)
	_, err := c.change(func(s *store.Store) (*store.Version, error) {
		for _, k := range all {
			late = slices.DeleteFunc(late, func(v *store.Version) bool { return v.Key == k.Version.Key })
			if _, err := s.Restore(k.Version); err != nil {
				return nil, err
			}
			if delete(c.stored, k.Version.Key); k.Stored != nil {
				c.stored[k.Version.Key] = k.Stored
			}
		}
		for _, v := range late {
			if _, err := s.Delete(v.Key, store.Preconditions{}); err != nil {
				return nil, err
			}
			delete(c.stored, v.Key)
		}
		return nil, nil
	})
	return err
}

// under is the object of a resource that etcd has under a key; nil: none is.
func (c *Cluster) under(registry string, r schema.GroupVersionResource, key string) *store.Version {
	rest, is := strings.CutPrefix(key, EtcdKey(registry, store.Key{Resource: r}))
	if !is {
		return nil
	}
	namespace, name, namespaced := strings.Cut(rest, "/")
	if !namespaced {
		namespace, name = "", rest
	}
	v, err := c.store.Get(store.Key{Resource: r, Namespace: namespace, Name: name})
	if err != nil {
		return nil
	}
	return v
}

// Observe calls f for every object that is there, and for every change from now on, in their order. f must not call the
// cluster, which is locked meanwhile.
func (c *Cluster) Observe(f func(store.Event)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.observe = f
	for _, t := range c.types.All() {
		all, revision, _ := c.store.List(t.Resource, "") // the store has the type
		for _, v := range all {
			f(store.Event{Type: watch.Added, Revision: revision, Version: v})
		}
	}
}

// SetStatus replaces the status of an object by what another version of it has, past every API server.
func (c *Cluster) SetStatus(r schema.GroupVersionResource, o *unstructured.Unstructured, manager string) error {
	_, err := c.change(func(s *store.Store) (*store.Version, error) {
		return s.Update(time.Now(), r, o, store.UpdateOptions{Manager: manager, Subresource: "status"})
	})
	return err
}

// Compact forgets what watches could go back to.
func (c *Cluster) Compact() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.store.Compact(c.store.Revision())
}

// change runs f with the store, and wakes watches if it changed something.
func (c *Cluster) change(f func(s *store.Store) (*store.Version, error)) (*store.Version, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.store.Revision()
	v, err := f(c.store)
	if c.store.Revision() != before {
		events, _ := c.store.Since(before) // they are not compacted yet
		for _, e := range events {
			c.newest[e.Version.Key.Resource.Group] = e.Revision
			if c.observe != nil {
				c.observe(e)
			}
		}
		close(c.changed)
		c.changed = make(chan struct{})
		c.store.Trim(keptEvents)
	}
	return v, err
}

// keptTexts bounds how many versions are kept as JSON. Each version is sent to every watch and to every client that
// polls; it is encoded once.
const keptTexts = 100

// shown is a version as a client gets it. Most versions are shown often: to every watch, and to who polls.
func (c *Cluster) shown(v *store.Version, partial bool) (json.RawMessage, error) {
	if partial {
		return json.Marshal(map[string]any{"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": v.Shown().Object["metadata"]})
	}
	return c.text(v, true)
}

// text is the JSON of a version, with managedFields or without.
func (c *Cluster) text(v *store.Version, managers bool) (json.RawMessage, error) {
	c.texts.Lock()
	defer c.texts.Unlock()
	k := textOf{v, managers}
	if text, ok := c.texts.of[k]; ok {
		return text, nil
	}
	o := v.Shown()
	if !managers {
		o.SetManagedFields(nil)
	}
	text, err := json.Marshal(o.Object)
	if err != nil {
		return nil, fmt.Errorf("encode %s %s: %w", v.Key.Resource.Resource, v.Key.Name, err)
	}
	if len(c.texts.of) >= keptTexts {
		clear(c.texts.of)
	}
	c.texts.of[k] = text
	return text, nil
}

// textOf is a version, with its managedFields or without.
type textOf struct {
	version  *store.Version
	managers bool
}
