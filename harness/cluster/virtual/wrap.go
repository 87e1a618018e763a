package virtual

import (
	"io"
	"net/http"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/kmsharness/kmsharness/harness/cluster/virtual/network"
)

// client is what sends the requests of a program. It takes a moment for each, which depends on the request: what several goroutines send in one
// instant would go over a new connection in any order.
type client struct {
	next http.RoundTripper
	id   network.Hash
}

var _ utilnet.RoundTripperWrapper = client{}

// moment is less than what a request takes.
const moment = 50 * time.Microsecond

// wrap is for the requests of one machine.
func (m *machine) wrap(host string) func(http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper {
		return client{next, network.Hash(m.seed).Text(host)}
	}
}

// RoundTrip implements http.RoundTripper.
func (c client) RoundTrip(r *http.Request) (*http.Response, error) {
	timer := time.NewTimer(c.id.Text(r.Method).Text(r.URL.Path).Text(body(r)).Number(time.Now().UnixNano()).Below(moment))
	defer timer.Stop()
	select {
	case <-timer.C:
		return c.next.RoundTrip(r)
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
}

// body is what a request sends: several objects may be created in one instant. What cannot be read twice is left to the request.
func body(r *http.Request) string {
	if r.GetBody == nil {
		return ""
	}
	b, err := r.GetBody()
	if err != nil {
		return ""
	}
	defer b.Close()
	text, _ := io.ReadAll(b) // it is in memory
	return string(text)
}

// WrappedRoundTripper implements utilnet.RoundTripperWrapper.
func (c client) WrappedRoundTripper() http.RoundTripper { return c.next }
