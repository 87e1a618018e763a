package mutants

import (
	"bytes"
	"io"
	"net/http"
	"slices"
	"strings"

	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/kmsharness/kmsharness/internal/host"
)

// outgoing is a request of a program for a resource without a namespace.
type outgoing struct {
	Verb, Name, Subresource, FieldManager, MediaType string
	Force                                            bool
	Body                                             []byte
}

// patched changes applies and no other requests.
func patched(change func(*outgoing)) func(*outgoing) {
	return func(o *outgoing) {
		if o.Verb == "patch" {
			change(o)
		}
	}
}

// wrapRequests puts a round tripper around what sends the requests of a program to the API.
func wrapRequests(h *host.Host, around func(next http.RoundTripper) roundTrip) {
	inner := *h
	h.WrapFunc = func(next http.RoundTripper) http.RoundTripper {
		next = inner.Wrap(next)
		return tripper{next, around(next)}
	}
}

type roundTrip = func(*http.Request) (*http.Response, error)

// tripper is a round tripper around another one.
type tripper struct {
	next http.RoundTripper
	trip roundTrip
}

var _ utilnet.RoundTripperWrapper = tripper{}

// RoundTrip implements http.RoundTripper.
func (t tripper) RoundTrip(r *http.Request) (*http.Response, error) { return t.trip(r) }

// WrappedRoundTripper implements utilnet.RoundTripperWrapper: connections are closed by it.
func (t tripper) WrappedRoundTripper() http.RoundTripper { return t.next }

// changeRequests changes what a program is about to send.
func changeRequests(h *host.Host, change func(*outgoing)) {
	wrapRequests(h, func(next http.RoundTripper) roundTrip {
		return func(r *http.Request) (*http.Response, error) {
			o, path, err := read(r)
			if err != nil {
				return nil, err
			}
			if path == "" {
				return next.RoundTrip(r)
			}
			change(&o)
			return next.RoundTrip(o.request(r, path))
		}
	})
}

func verbs() map[string]string {
	return map[string]string{http.MethodGet: "get", http.MethodPatch: "patch", http.MethodPut: "update", http.MethodPost: "create", http.MethodDelete: "delete"}
}

// read reads a request and the path of its resource, which is empty for a request of another kind.
func read(r *http.Request) (o outgoing, path string, err error) {
	parts := strings.Split(strings.TrimPrefix(r.URL.Path, "/"), "/")
	query := r.URL.Query()
	if len(parts) < 5 || len(parts) > 6 || parts[0] != "apis" || parts[3] == "namespaces" || query.Has("watch") {
		return outgoing{}, "", nil
	}
	o = outgoing{Verb: verbs()[r.Method], Name: parts[4], FieldManager: query.Get("fieldManager"), MediaType: r.Header.Get("Content-Type"), Force: query.Get("force") == "true"}
	if len(parts) == 6 {
		o.Subresource = parts[5]
	}
	if r.Body != nil {
		o.Body, err = io.ReadAll(r.Body)
		if closed := r.Body.Close(); err == nil {
			err = closed
		}
	}
	return o, "/" + strings.Join(parts[:4], "/"), err
}

// request is r with what o has become.
func (o outgoing) request(r *http.Request, path string) *http.Request {
	r = r.Clone(r.Context())
	for method, verb := range verbs() {
		if verb == o.Verb || method == http.MethodGet && o.Verb == "list" {
			r.Method = method
		}
	}
	r.URL.Path, r.URL.RawPath = strings.Join(slices.DeleteFunc([]string{path, o.Name, o.Subresource}, func(s string) bool { return s == "" }), "/"), ""
	query := r.URL.Query()
	query.Del("force")
	if o.Force && o.Verb == "patch" {
		query.Set("force", "true")
	}
	if query.Del("fieldManager"); o.FieldManager != "" {
		query.Set("fieldManager", o.FieldManager)
	}
	r.URL.RawQuery = query.Encode()
	if r.Body == nil {
		return r
	}
	if r.Header.Del("Content-Type"); o.MediaType != "" {
		r.Header.Set("Content-Type", o.MediaType)
	}
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(o.Body)), int64(len(o.Body))
	r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(o.Body)), nil }
	return r
}
