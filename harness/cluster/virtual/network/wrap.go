package network

import (
	"context"
	"io"
	"net"
	"net/http"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/kmsharness/kmsharness/internal/poll"
)

// client sends the requests of a program. It delays each by a moment that depends on the request. Several goroutines of
// a program may send in the same instant, and the runtime wakes them in any order; HTTP/2 would number their streams in
// that order. When a connection fails, all its requests fail in one instant, and each draws from a random source before
// it is tried again: the failures are spread in the same way.
type client struct {
	next http.RoundTripper
	id   Hash
}

var _ utilnet.RoundTripperWrapper = client{}

// moment is less than what a request takes, so that it changes no order of requests that depend on each other.
const moment = 50 * time.Microsecond

// Wrap is for the requests of the programs of one machine, as rest.Config's WrapTransport.
func (n *Network) Wrap(host string) func(http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper {
		return client{next, Hash(n.seed).Text(host)}
	}
}

func (c client) RoundTrip(r *http.Request) (*http.Response, error) {
	id := c.id.Text(r.Method).Text(r.URL.Path)
	if err := pause(r.Context(), id.Text(body(r))); err != nil {
		return nil, err
	}
	response, err := c.next.RoundTrip(r)
	if err != nil {
		_ = pause(r.Context(), id) // the error of the request is returned in any case
		return nil, lost(err)
	}
	response.Body = &answer{ReadCloser: response.Body, ctx: r.Context(), id: id}
	return response, nil
}

func pause(ctx context.Context, id Hash) error {
	return poll.Pause(ctx, id.Number(time.Now().UnixNano()).Below(moment))
}

// answer is the body of a response. Its reader learns of a failure a moment later.
type answer struct {
	io.ReadCloser
	ctx context.Context
	id  Hash
}

func (a *answer) Read(b []byte) (int, error) {
	n, err := a.ReadCloser.Read(b)
	if err != nil && err != io.EOF {
		_ = pause(a.ctx, a.id)
		err = lost(err)
	}
	return n, err
}

// forceClosed is what requests are told whose connection a program closes, or net.ErrClosed: two goroutines tell them in any order.
const forceClosed = "http2: client connection force closed via ClientConn.Close"

// lost is why a request failed, always the same.
func lost(err error) error {
	if err.Error() == forceClosed {
		return net.ErrClosed
	}
	return err
}

// body returns what a creation sends: several objects may be created in one instant by requests that differ in nothing else. What cannot be read
// twice is left out. Other requests name their object, and may send a certificate, which is another one in each run.
func body(r *http.Request) string {
	if r.GetBody == nil || r.Method != http.MethodPost {
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

func (c client) WrappedRoundTripper() http.RoundTripper { return c.next }
