package command

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

const (
	// readTimeout bounds a scraper that is slow to ask, so that it cannot pile up connections.
	readTimeout = 5 * time.Second
	// drainTimeout is left to scrapes in progress; well within the two seconds in which the process has to end.
	drainTimeout = 500 * time.Millisecond
)

// serveMetrics serves /metrics, /healthz (the process runs) and /readyz (its caches are filled) until ctx ends.
func serveMetrics(ctx context.Context, address string, registry *prometheus.Registry, synced func() bool) error {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if !synced() {
			http.Error(w, "caches are not filled yet", http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	})
	server := &http.Server{Addr: address, Handler: mux, ReadTimeout: readTimeout}
	drained := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(drained)
		ctx, cancel := context.WithTimeout(context.Background(), drainTimeout)
		defer cancel()
		_ = server.Shutdown(ctx) // what is not done by then is cut off with the process
	})
	err := server.ListenAndServe()
	if !stop() {
		<-drained
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("serve metrics on %s: %w", address, err)
}
