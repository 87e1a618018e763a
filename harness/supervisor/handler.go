package supervisor

import (
	"cmp"
	"context"
	"net/http"

	"github.com/kmsharness/kmsharness/fakeplugin/httpjson"
)

// handler is the control API. Every verb answers with the state that it led to.
func handler(p *program) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /v1/state", httpjson.Handler(func(*http.Request) (any, error) { return p.State(), nil }))
	mux.Handle("POST /v1/start", verb(p, p.start))
	mux.Handle("POST /v1/stop", verb(p, p.stop))
	mux.Handle("POST /v1/kill", verb(p, func(context.Context) error { return p.kill() }))
	mux.Handle("POST /v1/pause", verb(p, p.pause))
	mux.Handle("POST /v1/resume", verb(p, p.resume))
	mux.Handle("/", httpjson.Handler(func(r *http.Request) (any, error) {
		return nil, httpjson.Errorf(http.StatusNotFound,
			"there is no %.16s %.100s: expected GET /v1/state, or POST /v1/ with start, stop, kill, pause or resume", r.Method, r.URL.Path)
	}))
	return mux
}

// verb carries on when the caller goes away: what was begun to a process has to come to its end. A verb that the journal does not tell of is not
// called done: the history would lie.
func verb(p *program, do func(context.Context) error) http.Handler {
	return httpjson.Handler(func(r *http.Request) (any, error) {
		if err := cmp.Or(do(context.WithoutCancel(r.Context())), p.journal.Err()); err != nil {
			return nil, err
		}
		return p.State(), nil
	})
}
