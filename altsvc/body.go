package altsvc

import (
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"

	"golang.org/x/net/http2"
)

// requestBody is a request's body that can be read once. It stays open until the request is finished with, so that a failure to
// connect does not cost the body: the next attempt gets it as it is.
type requestBody struct {
	body io.ReadCloser

	mu     sync.Mutex
	begun  bool // something was read
	closed bool // an attempt has closed it
	last   bool // no other attempt follows
	err    error
}

func (b *requestBody) Read(p []byte) (int, error) {
	b.mu.Lock()
	b.begun = true
	b.mu.Unlock()
	n, err := b.body.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		b.mu.Lock()
		b.err = err
		b.mu.Unlock()
	}
	return n, err
}

func (b *requestBody) Close() error {
	b.mu.Lock()
	b.closed = true
	last := b.last
	b.mu.Unlock()
	if last {
		return b.body.Close()
	}
	return nil
}

// untouched reports whether another attempt can use the body.
func (b *requestBody) untouched() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return !b.begun
}

// broken reports whether the body itself failed.
func (b *requestBody) broken() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.err != nil
}

// release ends the attempts: the body is closed as soon as an attempt closes it, or has done so.
func (b *requestBody) release() {
	b.mu.Lock()
	b.last = true
	closed := b.closed
	b.mu.Unlock()
	if closed {
		_ = b.body.Close()
	}
}

// responseBody blocks an alternative when the connection is lost while a response is read. A watch is such a response for most of
// its time.
type responseBody struct {
	io.ReadCloser
	ctx    context.Context
	failed func(error)
	closed atomic.Bool
}

func (b *responseBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) && !b.closed.Load() && isConnectionError(b.ctx, err) {
		b.closed.Store(true) // report once
		b.failed(err)
	}
	return n, err
}

func (b *responseBody) Close() error {
	b.closed.Store(true)
	return b.ReadCloser.Close()
}

// isConnectionError reports whether a request failed because of its connection, rather than by itself: the client did not cancel
// it, and the server did not reset just its stream.
func isConnectionError(ctx context.Context, err error) bool {
	var stream http2.StreamError
	return ctx.Err() == nil && !errors.As(err, &stream) && !errors.Is(err, errClosed)
}
