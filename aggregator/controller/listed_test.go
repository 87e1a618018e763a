package controller

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
)

// late is a mirror whose watch is late.
type late struct {
	cached, live     []any
	cachedAt, liveAt string
	failed           error
}

func (l *late) List() []any     { return l.cached }
func (l *late) Version() string { return l.cachedAt }
func (l *late) ListLive(context.Context) ([]any, string, error) {
	return l.live, l.liveAt, l.failed
}

// A node that was seen to be gone does not come back because the watch is late, until the watch has passed that; nor for ever, should
// an API server's versions begin anew.
func TestListedIsTheNewestKnown(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Date(2026, 5, 8, 12, 0, 0, 0, time.UTC))
	informerCache := &late{cached: []any{"cp-1", "cp-2"}, cachedAt: "10", live: []any{"cp-1"}, liveAt: "20"}
	l := &listed{informerCache: informerCache, clock: clock}
	expect := func(when string, want ...any) {
		t.Helper()
		if got := l.latest(); !slices.Equal(got, want) {
			t.Errorf("%s: %v, expected %v", when, got, want)
		}
	}
	look := func() {
		t.Helper()
		if _, err := l.get(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	expect("before a look", "cp-1", "cp-2")
	look()
	expect("the watch shows nothing", "cp-1")
	informerCache.cached, informerCache.cachedAt = []any{"cp-1", "cp-2", "cp-0"}, "15"
	expect("the watch shows what was before", "cp-1")
	informerCache.cached, informerCache.cachedAt = []any{"cp-1", "cp-3"}, "21"
	expect("the watch is further", "cp-1", "cp-3")
	informerCache.liveAt = "30"
	look()
	informerCache.failed = errors.New("no answer")
	if _, err := l.get(t.Context()); err == nil {
		t.Error("no answer is no error")
	}
	expect("a look without an answer", "cp-1")
	clock.SetTime(clock.Now().Add(time.Minute))
	expect("long after a look", "cp-1", "cp-3")
}
