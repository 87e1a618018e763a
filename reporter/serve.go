package reporter

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/reporter/metrics"
)

// Limits of the metrics server. Its clients are a scraper and a kubelet, both near and few.
const (
	headerTimeout   = 5 * time.Second
	answerTimeout   = 10 * time.Second
	maxHeaderBytes  = 16 << 10
	shutdownTimeout = time.Second // half of the two seconds in which a reporter must end
)

// handler serves /metrics and /healthz. healthz is about the reporter itself, never about its plugins: it fails when
// no tick has begun for so long that readers call the report stale, which a restart may cure.
func handler(m *metrics.Metrics, o *Observer, interval time.Duration, now func() time.Time) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", m.Handler())
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		if limit := contract.StaleAfter(interval); !o.Alive(now(), limit) {
			http.Error(w, fmt.Sprintf("no tick began within the last %v", limit), http.StatusInternalServerError)
			return
		}
		fmt.Fprintln(w, "ok")
	})
	return mux
}

// serve answers on listener until ctx ends.
func serve(ctx context.Context, listener net.Listener, h http.Handler) error {
	server := &http.Server{Handler: h, ReadHeaderTimeout: headerTimeout, WriteTimeout: answerTimeout, IdleTimeout: answerTimeout, MaxHeaderBytes: maxHeaderBytes}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	select {
	case err := <-failed:
		return fmt.Errorf("serve metrics on %s: %w", listener.Addr(), err)
	case <-ctx.Done():
	}
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()
	if err := server.Shutdown(stop); err != nil {
		server.Close()
	}
	if err := <-failed; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve metrics on %s: %w", listener.Addr(), err)
	}
	return nil
}
