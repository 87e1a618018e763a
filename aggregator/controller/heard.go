package controller

import (
	"net/http"
	"strings"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// heard remembers when an API server last answered something for which it needs etcd: a write, or a read of a lease. What is listed or
// watched may come from its cache.
type heard struct {
	clock clock.PassiveClock

	mu        sync.Mutex
	at        time.Time
	throttled time.Time // when one last had too many requests
}

// ago is how long that was before now.
func (h *heard) ago() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.clock.Since(h.at)
}

// throttledSince says whether an API server answered that it had too many requests, at an instant or after it.
func (h *heard) throttledSince(t time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return !h.throttled.IsZero() && !h.throttled.Before(t)
}

func (h *heard) noteThrottled() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.throttled = h.clock.Now()
}

func (h *heard) note() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.at = h.clock.Now()
}

// wrap lets requests through and listens to their answers.
func (h *heard) wrap(next http.RoundTripper) http.RoundTripper { return &listening{next, h} }

type listening struct {
	next  http.RoundTripper
	heard *heard
}

// RoundTrip implements http.RoundTripper.
func (l *listening) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := l.next.RoundTrip(r)
	if err == nil && answer.StatusCode < http.StatusInternalServerError && asksEtcd(r) {
		l.heard.note()
	}
	if err == nil && answer.StatusCode == http.StatusTooManyRequests {
		l.heard.noteThrottled()
	}
	return answer, err
}

// WrappedRoundTripper lets client-go find the transport below, to close its connections.
func (l *listening) WrappedRoundTripper() http.RoundTripper { return l.next }

func asksEtcd(r *http.Request) bool {
	return r.Method != http.MethodGet || strings.Contains(r.URL.Path, "/leases/")
}
