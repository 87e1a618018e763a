package watch

import (
	"cmp"
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/record"
	"github.com/kmsharness/kmsharness/internal/poll"
)

type Target struct {
	GVR  schema.GroupVersionResource
	Name string
}

// Resource is "plural.group".
func (t Target) Resource() string { return t.GVR.GroupResource().String() }

// Sequence merges the deliveries of several watches: each state is recorded once, by whichever watch was first, and
// none after a newer one. It is safe for concurrent use.
type Sequence struct {
	sink    record.Sink
	mu      sync.Mutex
	seen    map[Target]state
	problem error
}

type state struct {
	version uint64
	present bool
	at      time.Time
	object  *history.Object
}

// NewSequence records to sink.
func NewSequence(sink record.Sink) *Sequence {
	return &Sequence{sink: sink, seen: map[Target]state{}}
}

// Present offers a state that a watch or a list delivered at an instant.
func (s *Sequence) Present(t Target, u *unstructured.Unstructured, at time.Time) {
	s.offer(t, u.GetResourceVersion(), true, at, func() (*history.Object, error) { return Convert(t.Resource(), u) })
}

// Absent offers the observation that there was no such object at a resourceVersion. It is news only if there was one.
func (s *Sequence) Absent(t Target, resourceVersion string, at time.Time) {
	s.offer(t, resourceVersion, false, at, func() (*history.Object, error) {
		return &history.Object{Resource: t.Resource(), Name: t.Name, ResourceVersion: resourceVersion, Deleted: true}, nil
	})
}

// offer records under the lock: two watches must not be able to swap two states between judging and recording. A watch that had no processor time since
// its delivery comes with an instant before that of an older state, which another watch has recorded meanwhile: states are in order in time, too.
// What the other watches bring once more is not converted.
func (s *Sequence) offer(t Target, resourceVersion string, present bool, at time.Time, object func() (*history.Object, error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v, err := version(resourceVersion)
	last := s.seen[t]
	var o *history.Object
	if err == nil {
		if v <= last.version || !present && !last.present {
			return
		}
		o, err = object()
	}
	if err != nil {
		s.problem = cmp.Or(s.problem, err)
		return
	}
	if at.Before(last.at) {
		at = last.at
	}
	o.Share(last.object)
	s.seen[t] = state{v, present, at, o}
	s.sink.Record(at, "watch", o)
}

// Problem is the first state that could not be recorded.
func (s *Sequence) Problem() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.problem
}

// reached waits until a state of t at or after version was recorded.
func (s *Sequence) reached(ctx context.Context, t Target, version uint64) error {
	return poll.Until(ctx, settlePoll, func() (bool, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.seen[t].version >= version, nil
	})
}
