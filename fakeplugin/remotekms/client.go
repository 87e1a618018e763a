package remotekms

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/kmsharness/kmsharness/fakeplugin/endpoint"
	"github.com/kmsharness/kmsharness/fakeplugin/httpjson"
	"github.com/kmsharness/kmsharness/fakeplugin/journal"
	"github.com/kmsharness/kmsharness/fakeplugin/keyring"
	"github.com/kmsharness/kmsharness/internal/host"
)

// Client is the KMS at an endpoint. Close it after use.
type Client struct {
	// Timeout of a request, apart from Journal; NewClient makes it DefaultTimeout.
	Timeout time.Duration

	http *httpjson.Client
}

// DefaultTimeout is below kube-apiserver's default of 3 s for a call of a plugin: it gets an answer, not a deadline.
const DefaultTimeout = 2 * time.Second

var (
	_ Service = (*Client)(nil)
	_ Service = (*KMS)(nil)
)

// NewClient talks to the KMS at the endpoint from a host, with a token if that needs one; it does not connect yet.
func NewClient(h host.Host, at endpoint.Endpoint, token string) *Client {
	return &Client{DefaultTimeout, httpjson.NewClient(h, at, token)}
}

// Close drops the idle connections.
func (c *Client) Close() { c.http.Close() }

// Describe implements Service.
func (c *Client) Describe(ctx context.Context, caller Caller, key string) (out Key, err error) {
	return out, c.do(ctx, http.MethodPost, keyPath(key, "describe"), cryptRequest{Caller: caller}, &out)
}

// Encrypt implements Service.
func (c *Client) Encrypt(ctx context.Context, caller Caller, key string, ref keyring.Ref, plain []byte) (out Sealed, err error) {
	return out, c.do(ctx, http.MethodPost, keyPath(key, "encrypt"), cryptRequest{Caller: caller, KEK: ref, Data: plain}, &out)
}

// Decrypt implements Service.
func (c *Client) Decrypt(ctx context.Context, caller Caller, key string, ciphertext []byte) ([]byte, error) {
	var out plaintext
	err := c.do(ctx, http.MethodPost, keyPath(key, "decrypt"), cryptRequest{Caller: caller, Data: ciphertext}, &out)
	return out.Plaintext, err
}

// Lease implements Service.
func (c *Client) Lease(ctx context.Context, caller Caller, terms Terms) (out Lease, err error) {
	return out, c.do(ctx, http.MethodPost, "/v1/leases", cryptRequest{Caller: caller, Terms: terms}, &out)
}

// Rotate implements Service.
func (c *Client) Rotate(ctx context.Context, key string, reuse int) (out keyring.KEK, err error) {
	return out, c.do(ctx, http.MethodPost, keyPath(key, "rotate"), rotateRequest{reuse}, &out)
}

// Recreate deletes a key for good, and makes another under its name.
func (c *Client) Recreate(ctx context.Context, key string) (out keyring.KEK, err error) {
	return out, c.do(ctx, http.MethodPost, keyPath(key, "recreate"), struct{}{}, &out)
}

// SetState says what a KEK may be used for from now on.
func (c *Client) SetState(ctx context.Context, key string, version int, s keyring.State, denied []keyring.Operation) (out keyring.KEK, err error) {
	return out, c.do(ctx, http.MethodPut, keyPath(key, "keks", strconv.Itoa(version)), stateRequest{s, denied}, &out)
}

// Keys is every key, by name.
func (c *Client) Keys(ctx context.Context) (out []Key, err error) {
	return out, c.do(ctx, http.MethodGet, "/v1/keys", nil, &out)
}

func (c *Client) Rules(ctx context.Context) (out []Rule, err error) {
	return out, c.do(ctx, http.MethodGet, "/v1/rules", nil, &out)
}

// LogIns is how many log-ins the KMS has seen since its start.
func (c *Client) LogIns(ctx context.Context) (out int, err error) {
	return out, c.do(ctx, http.MethodGet, "/v1/log-ins", nil, &out)
}

// SetRule adds r, or replaces the rule with the same caller pattern.
func (c *Client) SetRule(ctx context.Context, r Rule) error {
	return c.do(ctx, http.MethodPut, "/v1/rules", r, nil)
}

// DeleteRule ends the rule for a caller pattern.
func (c *Client) DeleteRule(ctx context.Context, caller string) error {
	return c.do(ctx, http.MethodDelete, "/v1/rules?"+url.Values{"caller": {caller}}.Encode(), nil, nil)
}

// Journal streams the KMS's journal as JSON lines; the caller closes it.
func (c *Client) Journal(ctx context.Context, q journal.Query) (io.ReadCloser, error) {
	return c.http.Stream(ctx, http.MethodGet, "/v1/journal?"+q.Values().Encode(), nil)
}

// Healthy is nil if the KMS answers.
func (c *Client) Healthy(ctx context.Context) error {
	return c.do(ctx, http.MethodGet, "/healthz", nil, nil)
}

func keyPath(key string, parts ...string) string {
	return "/v1/keys/" + url.PathEscape(key) + "/" + strings.Join(parts, "/")
}

// do tells a refusal, which is an answer, from silence.
func (c *Client) do(ctx context.Context, method, path string, in, out any) error {
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	err := c.http.Do(ctx, method, path, in, out)
	var p *httpjson.Problem
	switch {
	case err == nil:
		return nil
	case errors.As(err, &p) && p.Code != "":
		return &keyring.Refusal{Code: p.Code, Message: p.Message}
	case errors.As(err, &p):
		return fmt.Errorf("remote KMS: %w", err)
	default:
		return fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
}
