package controller

import (
	"context"
	"fmt"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/kmsharness/kmsharness/aggregator/reconcile"
)

// informerCache is a local copy of what one list and watch shows; changed is called after every change.
//
// It is client-go's Reflector on a store, the inner half of a shared informer. A shared informer would do as well but
// for its back-off, which cannot be set (kubernetes/kubernetes#136943) and reaches 30 s after an outage.
type informerCache struct {
	cache.Store
	reflector *cache.Reflector
	source    source
	changed   func()
	synced    chan struct{}
	once      sync.Once
}

// source lists and watches; both apply the mirror's selectors.
type source struct {
	name     string
	expected runtime.Object // the type of the items
	list     func(context.Context, metav1.ListOptions) (runtime.Object, error)
	watch    func(context.Context, metav1.ListOptions) (watch.Interface, error)
	labels   string
	fields   string
}

func newInformerCache(s source, changed func()) *informerCache {
	m := &informerCache{
		Store:  cache.NewStore(cache.DeletionHandlingMetaNamespaceKeyFunc),
		source: s, changed: changed, synced: make(chan struct{}),
	}
	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.LabelSelector, o.FieldSelector = s.labels, s.fields
			return s.list(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.LabelSelector, o.FieldSelector = s.labels, s.fields
			return s.watch(ctx, o)
		},
	}
	m.reflector = cache.NewReflectorWithOptions(lw, s.expected, m, cache.ReflectorOptions{
		Name: s.name, TypeDescription: s.name, Backoff: watchBackoff(),
	})
	return m
}

func watchBackoff() *wait.Backoff {
	return &wait.Backoff{Duration: reconcile.WatchRetryMin, Cap: reconcile.WatchRetryMax, Factor: 2, Jitter: 0.1, Steps: 5}
}

func (m *informerCache) run(ctx context.Context) { m.reflector.RunWithContext(ctx) }

// waitSynced returns once the first list has been stored.
func (m *informerCache) waitSynced(ctx context.Context) error {
	select {
	case <-m.synced:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Add, Update, Delete and Replace are called by the Reflector.

func (m *informerCache) Add(obj any) error    { return m.then(m.Store.Add(obj)) }
func (m *informerCache) Update(obj any) error { return m.then(m.Store.Update(obj)) }
func (m *informerCache) Delete(obj any) error { return m.then(m.Store.Delete(obj)) }

func (m *informerCache) Replace(items []any, resourceVersion string) error {
	err := m.then(m.Store.Replace(items, resourceVersion))
	m.once.Do(func() { close(m.synced) })
	return err
}

func (m *informerCache) then(err error) error {
	if err != nil {
		return fmt.Errorf("mirror: %w", err)
	}
	m.changed()
	return nil
}
