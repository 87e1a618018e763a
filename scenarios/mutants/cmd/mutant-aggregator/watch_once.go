package main

import (
	"net/http"
	"sync"

	"github.com/kmsharness/kmsharness/aggregator/controller"
)

// watchOnce lets every watch be made once. One that breaks is asked for again and never answered, as with a loop over the channel of a
// watch that is left when the channel closes: what the aggregator knows of changes ends with its first connection.
func watchOnce(c *controller.Config) {
	c.REST.Wrap(func(next http.RoundTripper) http.RoundTripper { return &watches{next: next, made: map[string]bool{}} })
}

// watches remembers which ones were made.
type watches struct {
	next http.RoundTripper
	mu   sync.Mutex
	made map[string]bool
}

// RoundTrip implements http.RoundTripper.
func (w *watches) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Query().Has("watch") && w.again(r.URL.Path+"?"+r.URL.Query().Get("fieldSelector")) {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	return w.next.RoundTrip(r)
}

func (w *watches) again(which string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	again := w.made[which]
	w.made[which] = true
	return again
}
