package supervisor

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/kmsharness/kmsharness/fakeplugin/endpoint"
	"github.com/kmsharness/kmsharness/fakeplugin/httpjson"
	"github.com/kmsharness/kmsharness/internal/host"
)

// Client asks the supervisor of one container. It dials for every call, because the container may have been restarted since the
// last one, and needs no closing. A refusal is a *httpjson.Problem.
type Client struct{ at endpoint.Endpoint }

// NewClient talks to the supervisor whose control API is at the endpoint (unix:///path). It does not connect yet.
func NewClient(at string) (Client, error) {
	e, err := endpoint.ParseUnix(at)
	if err != nil {
		return Client{}, err
	}
	return Client{e}, nil
}

// State of the program.
func (c Client) State(ctx context.Context) (State, error) {
	return c.do(ctx, http.MethodGet, "state")
}

// Start starts the program and returns when it runs (not when it is ready). Starting a running one is no error.
func (c Client) Start(ctx context.Context) (State, error) {
	return c.do(ctx, http.MethodPost, "start")
}

// Stop sends SIGTERM, after 4 s SIGKILL, and returns when the program is gone. It stays down until it is started.
func (c Client) Stop(ctx context.Context) (State, error) {
	return c.do(ctx, http.MethodPost, "stop")
}

// Kill sends SIGKILL and returns when the program is gone. It stays down until it is started.
func (c Client) Kill(ctx context.Context) (State, error) {
	return c.do(ctx, http.MethodPost, "kill")
}

// Pause freezes the program and its children and returns when it stands still.
func (c Client) Pause(ctx context.Context) (State, error) {
	return c.do(ctx, http.MethodPost, "pause")
}

// Resume lets a paused program continue. Resuming a running one is no error.
func (c Client) Resume(ctx context.Context) (State, error) {
	return c.do(ctx, http.MethodPost, "resume")
}

func (c Client) do(ctx context.Context, method, verb string) (s State, err error) {
	client := httpjson.NewClient(host.Host{}, c.at, "")
	defer client.Close()
	if err := client.Do(ctx, method, "/v1/"+verb, nil, &s); err != nil {
		return State{}, fmt.Errorf("supervisor: %w", err)
	}
	return s, nil
}

// States of the program. The last three are without a process.
const (
	Waiting = "waiting" // its container has just begun
	Running = "running"
	Paused  = "paused"
	Stopped = "stopped" // ended, or never started, on request; stays down until it is started
	Killed  = "killed"  // the same, by SIGKILL
	Exited  = "exited"  // ended by itself; the container ends too
)

type State struct {
	State string `json:"state"`
	// PID in the container's own namespace; 0 without a process.
	PID int `json:"pid"`
	// ExitCode of the last process as a container reports it: 128 + n after signal n. Nil while there was none, or it lives.
	ExitCode *int `json:"exitCode,omitempty"`
	// Since is when the program came into this state.
	Since time.Time `json:"since"`
}

// alive says whether there is a process.
func (s State) alive() bool { return s.State == Running || s.State == Paused }
