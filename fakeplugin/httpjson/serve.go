package httpjson

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/kmsharness/kmsharness/fakeplugin/endpoint"
	"github.com/kmsharness/kmsharness/internal/host"
)

// Limits of a server: a slow or idle peer may not hold it. They are generous for a local socket, and there is no
// write timeout because a followed journal is written for as long as somebody reads it.
const (
	readHeaderTimeout = 5 * time.Second
	idleTimeout       = 2 * time.Minute
	stopTimeout       = time.Second // well inside the two seconds that a process has to stop
)

// Serve answers on l, which listens on a host, until ctx ends, then waits for the requests under way, closes l and removes its socket file.
func Serve(ctx context.Context, on host.Host, l net.Listener, h http.Handler) error {
	s := &http.Server{
		Handler:           h,
		ReadHeaderTimeout: readHeaderTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    16 << 10,
		BaseContext:       func(net.Listener) context.Context { return ctx },
	}
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	select {
	case err := <-done:
		return fmt.Errorf("serve on %s: %w", l.Addr(), err)
	case <-ctx.Done():
	}
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	if err := s.Shutdown(stop); err != nil {
		_ = s.Close()
	}
	if err := <-done; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve on %s: %w", l.Addr(), err)
	}
	return endpoint.Leave(on, endpoint.Endpoint{Network: l.Addr().Network(), Address: l.Addr().String()})
}
