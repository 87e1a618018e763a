package altsvc

import (
	"errors"
	"io"
	"maps"
	"net/http"

	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// RoundTripper returns a round tripper that sends requests to alternatives, and to the origin through base.
func (s *Services) RoundTripper(base http.RoundTripper) http.RoundTripper {
	return &roundTripper{services: s, base: base}
}

type roundTripper struct {
	services *Services
	base     http.RoundTripper
}

var _ utilnet.RoundTripperWrapper = &roundTripper{}

// WrappedRoundTripper lets client-go find the transport.
func (r *roundTripper) WrappedRoundTripper() http.RoundTripper { return r.base }

// CloseIdleConnections closes idle connections to the origin and to alternatives.
func (r *roundTripper) CloseIdleConnections() {
	r.services.conns.closeIdle()
	utilnet.CloseIdleConnectionsFor(r.base)
}

// RoundTrip sends a request to an alternative, to further ones if that fails, and at last to the origin. A request is sent again
// only if no byte of it was sent, if its method is safe, or if the server was not authoritative. Errors are returned as they
// are, because client-go decides by their type and text whether it retries.
func (r *roundTripper) RoundTrip(req *http.Request) (*http.Response, error) {
	s := r.services
	if !s.applies(req) {
		return r.base.RoundTrip(req)
	}
	a := attempts{req: req}
	defer a.finish()
	for {
		address := s.next(a.tried)
		if address == "" {
			return r.origin(&a)
		}
		res, err := s.send(&a, address)
		if err == nil && res.StatusCode == http.StatusMisdirectedRequest {
			s.misdirected(address)
			if a.repeatable() {
				discard(res)
				continue
			}
			return res, nil
		}
		if err == nil {
			s.used(address)
			s.learn(req.Context(), res)
			return res, nil
		}
		if !s.retry(&a, address, err) {
			return nil, err
		}
	}
}

// origin sends a request to the origin.
func (r *roundTripper) origin(a *attempts) (*http.Response, error) {
	req, err := a.next()
	if err != nil {
		return nil, err
	}
	res, err := r.base.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if len(a.tried) > 0 {
		res.Request = a.req
	}
	r.services.learn(a.req.Context(), res)
	return res, nil
}

// applies reports whether a request may use alternatives: it goes to the origin, over HTTPS, without a proxy, and is no upgrade,
// which HTTP/2 does not have.
func (s *Services) applies(req *http.Request) bool {
	if req.URL == nil || req.URL.Scheme != "https" || req.Header.Get("Upgrade") != "" || !s.matches(req.URL.Host) {
		return false
	}
	proxy, err := s.options.Proxy(req)
	return err == nil && proxy == nil
}

// send sends a request to an alternative.
func (s *Services) send(a *attempts, address string) (*http.Response, error) {
	transport, err := s.conns.transport(address)
	if err != nil {
		return nil, err
	}
	req, err := a.next()
	if err != nil {
		return nil, err
	}
	a.tried = append(a.tried, address)
	req = req.WithContext(req.Context()) // a copy, because a round tripper must not change the request
	u := *req.URL
	u.Host = address
	req.URL, req.Host = &u, s.authority
	header := make(http.Header, len(req.Header)+1)
	maps.Copy(header, req.Header)
	header["Alt-Used"] = []string{address}
	req.Header = header
	res, err := transport.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	ctx := a.req.Context()
	res.Request = a.req
	res.Body = &responseBody{ReadCloser: res.Body, ctx: ctx, failed: func(err error) { s.failed(ctx, address, err) }}
	return res, nil
}

// retry blocks an alternative after an error if the error is the alternative's, and reports whether the request may be sent
// again.
func (s *Services) retry(a *attempts, address string, err error) bool {
	ctx := a.req.Context()
	var dial *dialError
	if errors.Is(err, errClosed) {
		return ctx.Err() == nil && a.repeatable()
	}
	if errors.As(err, &dial) {
		s.failed(ctx, address, err)
		return ctx.Err() == nil && a.repeatable()
	}
	if !isConnectionError(ctx, err) || a.broken() {
		return false
	}
	s.failed(ctx, address, err)
	return isSafe(a.req.Method) && a.repeatable()
}

// isSafe reports whether a method changes nothing on the server (RFC 7231, section 4.2.1). PUT and DELETE are idempotent, but the
// second answer differs from the first one: not found, or a conflict.
func isSafe(method string) bool {
	switch method {
	case "", http.MethodGet, http.MethodHead, http.MethodOptions:
		return true
	}
	return false
}

// attempts provides a request for each attempt.
type attempts struct {
	req   *http.Request
	tried []string // alternatives that were used
	begun bool
	body  *requestBody // of a request whose body cannot be obtained again
}

// next returns the request for the next attempt.
func (a *attempts) next() (*http.Request, error) {
	first := !a.begun
	a.begun = true
	if a.req.Body == nil || a.req.Body == http.NoBody || a.req.GetBody != nil && first {
		return a.req, nil
	}
	req := a.req.WithContext(a.req.Context())
	if a.req.GetBody != nil {
		var err error
		req.Body, err = a.req.GetBody()
		return req, err
	}
	if a.body == nil {
		a.body = &requestBody{body: a.req.Body}
	}
	req.Body = a.body
	return req, nil
}

// repeatable reports whether another attempt has a complete body.
func (a *attempts) repeatable() bool { return a.body == nil || a.body.untouched() }

func (a *attempts) broken() bool { return a.body != nil && a.body.broken() }

// finish closes the body of the request after the last attempt.
func (a *attempts) finish() {
	if a.body != nil {
		a.body.release()
	}
}

// discard ends a response that nobody reads.
func discard(res *http.Response) {
	_, _ = io.CopyN(io.Discard, res.Body, 4<<10)
	_ = res.Body.Close()
}
