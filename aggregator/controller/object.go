package controller

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/utils/clock"
)

// object is the newest known version of one mirrored object: the cache's, or what a write of our own returned while
// the watch has not shown it yet. Deciding from a cache older than one's own write would write the old answer again.
// It is used by one goroutine.
type object struct {
	mirror *mirror
	key    string
	clock  clock.PassiveClock
	own    *unstructured.Unstructured
	until  time.Time
}

// wrote remembers what a write returned.
func (o *object) wrote(result *unstructured.Unstructured) {
	o.own, o.until = result, o.clock.Now().Add(ownWriteMemory)
}

// latest is nil when the object does not exist. The result is shared: not to be changed.
func (o *object) latest() *unstructured.Unstructured {
	item, exists, err := o.mirror.GetByKey(o.key)
	cached, ok := item.(*unstructured.Unstructured)
	if err != nil || !exists || !ok {
		return nil
	}
	if o.own == nil || o.clock.Now().After(o.until) || !newer(o.own, cached) {
		o.own = nil
		return cached
	}
	return o.own
}

// newer compares versions of one object. An object that was deleted and created again is another one.
func newer(a, b *unstructured.Unstructured) bool {
	order, err := resourceversion.CompareResourceVersion(a.GetResourceVersion(), b.GetResourceVersion())
	return err == nil && order > 0 && a.GetUID() == b.GetUID()
}
