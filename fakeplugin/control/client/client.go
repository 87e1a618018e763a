// Package client is the Go client of a fake plugin's control API.
package client

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/kmsharness/kmsharness/fakeplugin/control"
	"github.com/kmsharness/kmsharness/fakeplugin/endpoint"
	"github.com/kmsharness/kmsharness/fakeplugin/fault"
	"github.com/kmsharness/kmsharness/fakeplugin/httpjson"
	"github.com/kmsharness/kmsharness/fakeplugin/journal"
	"github.com/kmsharness/kmsharness/fakeplugin/keyring"
	"github.com/kmsharness/kmsharness/fakeplugin/server"
	"github.com/kmsharness/kmsharness/internal/host"
)

// Client is the control API at an endpoint. Close it after use. An error that the API answered is a *httpjson.Problem.
type Client struct{ http *httpjson.Client }

// New talks from a host to the plugin whose control API is at the endpoint (unix:///path, unix:///@name or tcp://host:port); the
// token is empty unless the API needs one. It does not connect yet.
func New(h host.Host, at, token string) (*Client, error) {
	e, err := endpoint.Parse(at)
	if err != nil {
		return nil, err
	}
	return &Client{httpjson.NewClient(h, e, token)}, nil
}

// Close drops the idle connections.
func (c *Client) Close() { c.http.Close() }

// Healthy is nil if the API answers.
func (c *Client) Healthy(ctx context.Context) error {
	return c.http.Do(ctx, http.MethodGet, "/healthz", nil, nil)
}

// Status is what the plugin is and does.
func (c *Client) Status(ctx context.Context) (out server.State, err error) {
	return out, c.http.Do(ctx, http.MethodGet, "/v1/status", nil, &out)
}

func (c *Client) Faults(ctx context.Context) (out []fault.Active, err error) {
	return out, c.http.Do(ctx, http.MethodGet, "/v1/faults", nil, &out)
}

// Inject puts a fault in force. When it returns the next call is struck.
func (c *Client) Inject(ctx context.Context, name string, params map[string]any) (out fault.Active, err error) {
	return out, c.http.Do(ctx, http.MethodPost, "/v1/faults", fault.Spec{Name: name, Params: params}, &out)
}

// Release ends one fault. When it returns the plugin is good again, or as other faults want it.
func (c *Client) Release(ctx context.Context, id string) error {
	return c.http.Do(ctx, http.MethodDelete, "/v1/faults/"+url.PathEscape(id), nil, nil)
}

// ReleaseName ends every fault of a name, ReleaseAll every fault; both return the ids.
func (c *Client) ReleaseName(ctx context.Context, name string) ([]string, error) {
	return c.release(ctx, "?"+url.Values{"name": {name}}.Encode())
}

// ReleaseAll ends every fault and returns their ids.
func (c *Client) ReleaseAll(ctx context.Context) ([]string, error) { return c.release(ctx, "") }

func (c *Client) release(ctx context.Context, query string) ([]string, error) {
	var out control.Released
	err := c.http.Do(ctx, http.MethodDelete, "/v1/faults"+query, nil, &out)
	return out.Released, err
}

// Journal streams the journal as JSON lines (journal.Call); the caller closes it. method selects as fault.ParseMethods
// reads it, "" is all.
func (c *Client) Journal(ctx context.Context, q journal.Query, method string) (io.ReadCloser, error) {
	values := q.Values()
	if method != "" {
		values.Set("method", method)
	}
	return c.http.Stream(ctx, http.MethodGet, "/v1/journal?"+values.Encode(), nil)
}

// Keys is what the plugin knows of its remote key.
func (c *Client) Keys(ctx context.Context) (out control.KeysAnswer, err error) {
	return out, c.http.Do(ctx, http.MethodGet, "/v1/keys", nil, &out)
}

// Rotate rotates the remote key, for all plugins that use it.
func (c *Client) Rotate(ctx context.Context, req control.RotateRequest) (out keyring.KEK, err error) {
	return out, c.http.Do(ctx, http.MethodPost, "/v1/rotate", req, &out)
}

// Notice makes the plugin notice a rotation now, whatever its lag.
func (c *Client) Notice(ctx context.Context) (out control.KeysAnswer, err error) {
	return out, c.http.Do(ctx, http.MethodPost, "/v1/notice", nil, &out)
}

// SetNoticeLag says how late the plugin notices a rotation from now on.
func (c *Client) SetNoticeLag(ctx context.Context, lag time.Duration) error {
	return c.http.Do(ctx, http.MethodPut, "/v1/notice-lag", control.NoticeLag{Lag: lag.String()}, nil)
}

// SetProfile makes the plugin stand for a provider of this repository from now on; empty: for none.
func (c *Client) SetProfile(ctx context.Context, name string) error {
	return c.http.Do(ctx, http.MethodPut, "/v1/profile", control.Profile{Profile: name}, nil)
}
