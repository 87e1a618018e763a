package watch

import (
	"net/http"

	"k8s.io/client-go/rest"
)

// Impatient is c for a Watcher: what an API server says about when to come again is kept from client-go, which would
// sleep that long, in whole seconds and several times in a row. An API server that starts says it of every resource whose
// cache it has not filled yet, and what happens meanwhile would be observed late, or not at all. The Watcher tries again
// after RetryEvery.
func Impatient(c *rest.Config) *rest.Config {
	c = rest.CopyConfig(c)
	c.Wrap(func(next http.RoundTripper) http.RoundTripper { return impatient{next} })
	return c
}

type impatient struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (i impatient) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := i.next.RoundTrip(r)
	if err == nil {
		response.Header.Del("Retry-After")
	}
	return response, err
}

// WrappedRoundTripper lets client-go find the transport below, whose idle connections it closes.
func (i impatient) WrappedRoundTripper() http.RoundTripper { return i.next }
