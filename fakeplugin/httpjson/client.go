package httpjson

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"

	"github.com/kmsharness/kmsharness/fakeplugin/endpoint"
	"github.com/kmsharness/kmsharness/internal/host"
)

// maxAnswer bounds what a client reads of an answer that is not streamed: a full journal page.
const maxAnswer = 64 << 20

// Client talks to a server on an endpoint.
type Client struct {
	http  *http.Client
	token string
	at    endpoint.Endpoint
}

// NewClient talks to at from a host, with a bearer token if one is given. Close it after use.
func NewClient(h host.Host, at endpoint.Endpoint, token string) *Client {
	transport := &http.Transport{
		DialContext:         func(ctx context.Context, _, _ string) (net.Conn, error) { return at.Dial(ctx, h) },
		MaxIdleConnsPerHost: 16,         // a plugin under 100 concurrent Encrypts should not dial for each
		DisableKeepAlives:   !h.Alone(), // in virtual time the one that gets an idle connection would depend on the order of an instant
	}
	return &Client{http: &http.Client{Transport: transport}, token: token, at: at}
}

// Close drops the idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Do sends in (nil: no body) and reads the answer into out (nil: ignored). A refusal is a *Problem.
func (c *Client) Do(ctx context.Context, method, path string, in, out any) error {
	body, err := c.Stream(ctx, method, path, in)
	if err != nil {
		return err
	}
	defer body.Close()
	b, err := io.ReadAll(io.LimitReader(body, maxAnswer))
	if err != nil {
		return fmt.Errorf("%s %s%s: read the answer: %w", method, c.at, path, err)
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(b, out); err != nil {
		return fmt.Errorf("%s %s%s: the answer is not the expected JSON: %w", method, c.at, path, err)
	}
	return nil
}

// Stream is Do for an answer that the caller reads, and closes, himself.
func (c *Client) Stream(ctx context.Context, method, path string, in any) (io.ReadCloser, error) {
	req, err := c.request(ctx, method, path, in)
	if err != nil {
		return nil, fmt.Errorf("%s %s%s: %w", method, c.at, path, err)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		var u *url.Error
		if errors.As(err, &u) {
			err = u.Err // its URL names a host that does not exist
		}
		return nil, fmt.Errorf("%s %s%s: %w", method, c.at, path, err)
	}
	if resp.StatusCode < 300 {
		return resp.Body, nil
	}
	defer resp.Body.Close()
	return nil, problem(resp)
}

func (c *Client) request(ctx context.Context, method, path string, in any) (*http.Request, error) {
	var body io.Reader
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			return nil, fmt.Errorf("encode the request: %w", err)
		}
		body = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://localhost"+path, body)
	if err != nil {
		return nil, err
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	return req, nil
}

func problem(resp *http.Response) error {
	p := &Problem{Status: resp.StatusCode}
	b, err := io.ReadAll(io.LimitReader(resp.Body, MaxBody))
	if err != nil || json.Unmarshal(b, p) != nil || p.Message == "" {
		p.Message = "the server answered " + resp.Status
	}
	return p
}
