// Package informer is a local copy of what one list and watch shows, for a program that has to see a change soon after an outage.
package informer

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// RetryMin and RetryMax bound the back-off of list and watch. client-go's own goes up to 30 s, which is made for thousands of clients; of a program that
// uses this package there is one in a cluster, or a few.
const (
	RetryMin = 50 * time.Millisecond
	RetryMax = 400 * time.Millisecond
)

type Source struct {
	// Labels and Fields are selectors; empty selects everything.
	Labels, Fields string

	name     string
	expected runtime.Object
	list     func(context.Context, metav1.ListOptions) (runtime.Object, error)
	watch    func(context.Context, metav1.ListOptions) (watch.Interface, error)
}

// client is one resource of a clientset, or of a dynamic or metadata client.
type client[L runtime.Object] interface {
	List(context.Context, metav1.ListOptions) (L, error)
	Watch(context.Context, metav1.ListOptions) (watch.Interface, error)
}

// Of is a source of everything that a client shows. The name is for messages; expected has the type of the items.
func Of[L runtime.Object](name string, expected runtime.Object, c client[L]) Source {
	return Source{
		name: name, expected: expected, watch: c.Watch,
		list: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return c.List(ctx, o) },
	}
}

func (s Source) selecting(o metav1.ListOptions) metav1.ListOptions {
	o.LabelSelector, o.FieldSelector = s.Labels, s.Fields
	return o
}

// Cache is the copy. It is client-go's Reflector on a store, the inner half of a shared informer. A shared informer would do as well but for its
// back-off, which cannot be set (kubernetes/kubernetes#136943) and reaches 30 s after an outage.
type Cache struct {
	cache.Store
	reflector *cache.Reflector
	source    Source
	changed   func()
	synced    chan struct{}
	once      sync.Once
}

// New prepares a cache; nothing is contacted before Run. changed is called after every change.
func New(s Source, changed func()) *Cache {
	c := &Cache{Store: cache.NewStore(cache.DeletionHandlingMetaNamespaceKeyFunc), source: s, changed: changed, synced: make(chan struct{})}
	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return s.list(ctx, s.selecting(o))
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return s.watch(ctx, s.selecting(o))
		},
	}
	c.reflector = cache.NewReflectorWithOptions(lw, s.expected, reflected{c}, cache.ReflectorOptions{
		Name: s.name, TypeDescription: s.name, Backoff: &wait.Backoff{Duration: RetryMin, Cap: RetryMax, Factor: 2, Jitter: 0.1, Steps: 5},
	})
	return c
}

// Run lists and watches until ctx ends, and returns when it has stopped.
func (c *Cache) Run(ctx context.Context) { c.reflector.RunWithContext(ctx) }

// Synced reports whether the first list has been stored.
func (c *Cache) Synced() bool {
	select {
	case <-c.synced:
		return true
	default:
		return false
	}
}

// WaitSynced returns once the first list has been stored; the error is that of ctx.
func (c *Cache) WaitSynced(ctx context.Context) error {
	select {
	case <-c.synced:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for the first list of %s: %w", c.source.name, ctx.Err())
	}
}

// Version is that of the newest thing that list and watch have shown.
func (c *Cache) Version() string { return c.reflector.LastSyncResourceVersion() }

// ListLive asks the API server for what the cache is a copy of, and its version.
func (c *Cache) ListLive(ctx context.Context) (items []any, version string, err error) {
	result, err := c.source.list(ctx, c.source.selecting(metav1.ListOptions{}))
	if err != nil {
		return nil, "", fmt.Errorf("list %s: %w", c.source.name, err)
	}
	err = meta.EachListItem(result, func(item runtime.Object) error {
		items = append(items, item)
		return nil
	})
	if err != nil {
		return nil, "", fmt.Errorf("list %s: %w", c.source.name, err)
	}
	list, err := meta.ListAccessor(result)
	if err != nil {
		return nil, "", fmt.Errorf("list %s: %w", c.source.name, err)
	}
	return items, list.GetResourceVersion(), nil
}

// reflected is the store as a Reflector fills it.
type reflected struct{ *Cache }

func (r reflected) Add(obj any) error    { return r.then(r.Store.Add(obj)) }
func (r reflected) Update(obj any) error { return r.then(r.Store.Update(obj)) }
func (r reflected) Delete(obj any) error { return r.then(r.Store.Delete(obj)) }

func (r reflected) Replace(items []any, resourceVersion string) error {
	err := r.then(r.Store.Replace(items, resourceVersion))
	r.once.Do(func() { close(r.synced) })
	return err
}

func (r reflected) then(err error) error {
	if err != nil {
		return fmt.Errorf("copy of %s: %w", r.source.name, err)
	}
	r.changed()
	return nil
}
