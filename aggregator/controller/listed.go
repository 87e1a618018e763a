package controller

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/utils/clock"

	"github.com/kmsharness/kmsharness/aggregator/reconcile"
)

// listed is the newest known state of everything that a mirror is a copy of: the cache's, or what the API server answered to a list of our
// own while the watch is not as far. A watch that is late would else bring a node back that was seen to be gone. It is used by one
// goroutine at a time.
type listed struct {
	informerCache shown
	clock         clock.PassiveClock
	own           reconcile.Newest[list]
}

// list is items at a version.
type list struct {
	items   []any
	version string
}

// shown is what list and watch have shown, at a version, and what the API server has.
type shown interface {
	List() []any
	Version() string
	ListLive(ctx context.Context) (items []any, version string, err error)
}

// latest is shared: not to be changed.
func (l *listed) latest() []any {
	cached := list{l.informerCache.List(), l.informerCache.Version()}
	return l.own.Latest(cached, l.clock.Now(), func(own list) bool { return before(cached.version, own.version) }).items
}

// get asks the API server.
func (l *listed) get(ctx context.Context) ([]any, error) {
	items, version, err := l.informerCache.ListLive(ctx)
	if err != nil {
		return nil, err
	}
	l.own.Saw(list{items, version}, l.clock.Now())
	return items, nil
}

// before is false for versions that cannot be compared.
func before(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order < 0
}

// expectedNodes is the nodes that should report, each with its time of creation: Nodes by their own, nodes that run
// an API server pod by the oldest such pod. podNodeLabel is that of Expected.
func expectedNodes(items []any, podNodeLabel string) map[string]time.Time {
	out := make(map[string]time.Time, len(items))
	for _, item := range items {
		name, created := nodeOf(item, podNodeLabel)
		if old, known := out[name]; name != "" && (!known || created.Before(old)) {
			out[name] = created
		}
	}
	return out
}

// nodeOf is empty for a pod that is not scheduled, or whose containers have ended for good.
func nodeOf(item any, podNodeLabel string) (name string, created time.Time) {
	switch o := item.(type) {
	case *metav1.PartialObjectMetadata:
		return o.Name, o.CreationTimestamp.UTC()
	case *unstructured.Unstructured:
		phase, _, _ := unstructured.NestedString(o.Object, "status", "phase")
		if phase == "Succeeded" || phase == "Failed" {
			return "", time.Time{}
		}
		if podNodeLabel != "" {
			return o.GetLabels()[podNodeLabel], o.GetCreationTimestamp().UTC()
		}
		name, _, _ = unstructured.NestedString(o.Object, "spec", "nodeName")
		return name, o.GetCreationTimestamp().UTC()
	}
	return "", time.Time{}
}
