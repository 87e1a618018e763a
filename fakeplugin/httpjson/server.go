// Package httpjson is strict JSON over HTTP, for any API: requests are bounded and must not have unknown fields, and
// every error is a JSON object that describes the mistake.
package httpjson

import (
	"bytes"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// MaxBody bounds a request's body, in bytes. The largest honest one is a fault with a text of 1 KiB, or the
// Encrypt of a DEK seed.
const MaxBody = 64 << 10

// Problem is the answer to a request that failed.
type Problem struct {
	Status  int    `json:"-"`
	Code    string `json:"code,omitempty"` // for programs; stable
	Message string `json:"error"`          // for people; one line
}

func (p *Problem) Error() string { return p.Message }

// Errorf is a Problem with an HTTP status.
func Errorf(status int, format string, args ...any) *Problem {
	return &Problem{Status: status, Message: fmt.Sprintf(format, args...)}
}

// Handler answers a request with a value that becomes the JSON body (nil: no body), or an error. An error that is
// not a *Problem is the server's own fault: 500.
type Handler func(*http.Request) (any, error)

// ServeHTTP implements http.Handler.
func (h Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, MaxBody)
	body, err := h(r)
	switch {
	case err != nil:
		WriteError(w, err)
	case body == nil:
		w.WriteHeader(http.StatusNoContent)
	default:
		write(w, http.StatusOK, body)
	}
}

// WithToken lets those who have a bearer token use h; everybody if token is empty.
func WithToken(h http.Handler, token string) http.Handler {
	if token == "" {
		return h
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		given, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if !ok || subtle.ConstantTimeCompare([]byte(given), []byte(token)) != 1 {
			WriteError(w, Errorf(http.StatusUnauthorized, "this API needs its bearer token (--token-file)"))
			return
		}
		h.ServeHTTP(w, r)
	})
}

// WriteError answers with err.
func WriteError(w http.ResponseWriter, err error) {
	var p *Problem
	if !errors.As(err, &p) {
		p = &Problem{Status: http.StatusInternalServerError, Message: err.Error()}
	}
	write(w, p.Status, p)
}

func write(w http.ResponseWriter, status int, body any) {
	b, err := json.Marshal(body)
	if err != nil {
		http.Error(w, `{"error":"the answer cannot be encoded"}`, http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(b, '\n')) // the caller is gone: nobody is left to tell
}

// Decode reads exactly one JSON object into v; an empty body is the zero value. Errors are Problems.
func Decode(r *http.Request, v any) error {
	b, err := io.ReadAll(r.Body)
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return Errorf(http.StatusRequestEntityTooLarge, "the body is larger than %d bytes", tooLarge.Limit)
	case err != nil:
		return Errorf(http.StatusBadRequest, "the body cannot be read: %v", err)
	case len(bytes.TrimSpace(b)) == 0:
		return nil
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		return Errorf(http.StatusBadRequest, "the body is not what is expected here: %s", strings.TrimPrefix(err.Error(), "json: "))
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return Errorf(http.StatusBadRequest, "the body holds more than one JSON value")
	}
	return nil
}

// Body is a Handler that reads the body of a request first.
func Body[T any](h func(*http.Request, T) (any, error)) Handler {
	return func(r *http.Request) (any, error) {
		var body T
		if err := Decode(r, &body); err != nil {
			return nil, err
		}
		return h(r, body)
	}
}

// NotFound answers for every path and method that mux does not serve, in the form of all other errors.
func NotFound(mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, pattern := mux.Handler(r); pattern != "" {
			mux.ServeHTTP(w, r)
			return
		}
		for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete} {
			other := r.Clone(r.Context())
			other.Method = method
			if _, pattern := mux.Handler(other); pattern != "" {
				WriteError(w, Errorf(http.StatusMethodNotAllowed, "%s does not take %.16q, but %s", r.URL.Path, r.Method, method))
				return
			}
		}
		WriteError(w, Errorf(http.StatusNotFound, "there is no %.200q; see /openapi.yaml", r.URL.Path))
	})
}
