package httpjson

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/kmsharness/kmsharness/fakeplugin/endpoint"
	"github.com/kmsharness/kmsharness/internal/host"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A request that hangs does not keep the server from stopping, and nothing is left behind.
func TestServeStopsAndCleansUp(t *testing.T) {
	at := endpoint.Endpoint{Network: "unix", Address: filepath.Join(t.TempDir(), "api.sock")}
	l, err := endpoint.Listen(host.Host{}, at, endpoint.DefaultMode)
	if err != nil {
		t.Fatal(err)
	}
	arrived := make(chan struct{})
	h := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { close(arrived); <-r.Context().Done() })
	ctx, stop := context.WithCancel(context.Background())
	served, asked := make(chan error, 1), make(chan error, 1)
	go func() { served <- Serve(ctx, host.Host{}, l, h) }()
	c := NewClient(host.Host{}, at, "")
	defer c.Close()
	go func() { asked <- c.Do(context.Background(), http.MethodGet, "/", nil, nil) }()
	<-arrived
	stop()
	select {
	case err := <-served:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(2 * time.Second):
		t.Fatal("does not stop")
	}
	<-asked
	if _, err := os.Stat(at.Address); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket file: %v", err)
	}
}

func TestErrorsOfTheServerAreProblems(t *testing.T) {
	at := endpoint.Endpoint{Network: "unix", Address: filepath.Join(t.TempDir(), "api.sock")}
	l, err := endpoint.Listen(host.Host{}, at, endpoint.DefaultMode)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /refused", Handler(func(*http.Request) (any, error) { return nil, Errorf(http.StatusConflict, "not now") }))
	mux.Handle("GET /broken", Handler(func(*http.Request) (any, error) { return nil, errors.New("disk full") }))
	mux.HandleFunc("GET /mute", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- Serve(ctx, host.Host{}, l, NotFound(mux)) }()
	c := NewClient(host.Host{}, at, "")
	for path, want := range map[string]Problem{
		"/refused": {Status: http.StatusConflict, Message: "not now"},
		"/broken":  {Status: http.StatusInternalServerError, Message: "disk full"},
		"/mute":    {Status: http.StatusTeapot, Message: "the server answered 418 I'm a teapot"},
		"/nowhere": {Status: http.StatusNotFound, Message: `there is no "/nowhere"; see /openapi.yaml`},
	} {
		var p *Problem
		if err := c.Do(context.Background(), http.MethodGet, path, nil, nil); !errors.As(err, &p) || *p != want {
			t.Errorf("%s: %v, want %+v", path, err, want)
		}
	}
	c.Close()
	stop()
	if err := <-served; err != nil {
		t.Error(err)
	}
}
