package controller

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"

	"github.com/kmsharness/kmsharness/aggregator/reconcile"
	"github.com/kmsharness/kmsharness/internal/informer"
)

// object is the newest known version of one mirrored object: the cache's, or what the API server returned to a
// request of the aggregator's own; see reconcile.Newest. It is used by one goroutine at a time.
type object struct {
	informerCache *informer.Cache
	resource      dynamic.ResourceInterface
	key           string
	clock         clock.PassiveClock
	own           reconcile.Newest[*unstructured.Unstructured]
}

// saw remembers what the API server returned.
func (o *object) saw(result *unstructured.Unstructured) { o.own.Saw(result, o.clock.Now()) }

// get asks the API server; nil when the object does not exist.
func (o *object) get(ctx context.Context) (*unstructured.Unstructured, error) {
	result, err := o.resource.Get(ctx, o.key, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("get %s: %w", o.key, err)
	}
	o.saw(result)
	return result, nil
}

// latest is nil when the object does not exist. The result is shared: not to be changed.
func (o *object) latest() *unstructured.Unstructured {
	item, exists, err := o.informerCache.GetByKey(o.key)
	cached, ok := item.(*unstructured.Unstructured)
	if err != nil || !exists || !ok {
		return nil
	}
	return o.own.Latest(cached, o.clock.Now(), func(own *unstructured.Unstructured) bool { return newer(own, cached) })
}

// newer compares versions of one object. An object that was deleted and created again is another one.
func newer(a, b *unstructured.Unstructured) bool {
	order, err := resourceversion.CompareResourceVersion(a.GetResourceVersion(), b.GetResourceVersion())
	return err == nil && order > 0 && a.GetUID() == b.GetUID()
}
