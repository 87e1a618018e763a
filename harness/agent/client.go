package agent

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/kmsharness/kmsharness/harness/netfault"
)

// Client talks to the agent of one pod.
type Client struct {
	// Connect makes a connection to the agent's control port.
	Connect func(context.Context) (net.Conn, error)
	Token   string
}

// silence is how long a stream may show nothing before it counts as broken: the agent shows every second that it lives.
const silence = 10 * aliveEvery

// Follow passes on what is appended to the files of the pod, behind what has says is there already, until ctx ends or the stream breaks.
func (c *Client) Follow(ctx context.Context, has Sizes, use func(name string, at int64, content []byte) error) error {
	body, err := json.Marshal(has)
	if err != nil {
		return err
	}
	conn, response, err := c.open(ctx, http.MethodPost, pathFollow, nil, body)
	if err != nil {
		return err
	}
	defer conn.Close()
	ended := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer ended()
	r := bufio.NewReaderSize(response.Body, 64<<10)
	for {
		if err := conn.SetReadDeadline(time.Now().Add(silence)); err != nil {
			return err
		}
		if err := readChunk(r, use); err != nil {
			return fmt.Errorf("follow the files of the pod: %w", err)
		}
	}
}

// Sizes are those of the files that Follow copies, now.
func (c *Client) Sizes(ctx context.Context) (s Sizes, err error) {
	return s, c.do(ctx, http.MethodGet, pathSizes, nil, nil, &s)
}

// Time is the clock of the pod.
func (c *Client) Time(ctx context.Context) (t time.Time, err error) {
	return t, c.do(ctx, http.MethodGet, pathTime, nil, nil, &t)
}

// Put replaces a file of the pod.
func (c *Client) Put(ctx context.Context, name string, text []byte, mode uint32) error {
	query := url.Values{"name": {name}, "mode": {strconv.FormatUint(uint64(mode), 8)}}
	return c.do(ctx, http.MethodPut, pathFile, query, text, nil)
}

// SetLink puts a fault in force between the programs of the pod and the API server; the zero fault ends it.
func (c *Client) SetLink(ctx context.Context, f netfault.Fault) error {
	body, err := json.Marshal(f)
	if err != nil {
		return err
	}
	return c.do(ctx, http.MethodPut, pathLink, nil, body, nil)
}

// Dial connects to a socket of the pod by its name, or to a port of it ("tcp:PORT").
func (c *Client) Dial(ctx context.Context, to string) (net.Conn, error) {
	conn, response, err := c.open(ctx, http.MethodGet, pathDial, url.Values{"to": {to}}, nil)
	if err != nil {
		return nil, err
	}
	return &dialled{Conn: conn, rest: response.Body}, nil
}

// dialled is a connection whose first bytes the reader of the HTTP headers may have.
type dialled struct {
	net.Conn
	rest io.Reader
}

func (d *dialled) Read(b []byte) (int, error) { return d.rest.Read(b) }

// CloseWrite ends one direction.
func (d *dialled) CloseWrite() error {
	if half, ok := d.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return d.Close()
}

func (c *Client) do(ctx context.Context, method, path string, query url.Values, body []byte, out any) error {
	conn, response, err := c.open(ctx, method, path, query, body)
	if err != nil {
		return err
	}
	defer conn.Close()
	if out == nil {
		return nil
	}
	ended := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer ended()
	if err := json.NewDecoder(response.Body).Decode(out); err != nil {
		return fmt.Errorf("agent: %s %s: %w", method, path, err)
	}
	return nil
}

// open sends a request over a connection of its own, which the caller closes, and reads the head of the answer. Its deadline ends with the
// call.
func (c *Client) open(ctx context.Context, method, path string, query url.Values, body []byte) (_ net.Conn, _ *http.Response, err error) {
	conn, err := c.Connect(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("agent: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("agent: %s %s: %w", method, path, err), conn.Close())
		}
	}()
	aborted := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer aborted()
	at := url.URL{Scheme: "http", Host: "agent", Path: path, RawQuery: query.Encode()}
	r, err := http.NewRequestWithContext(ctx, method, at.String(), bytes.NewReader(body))
	if err != nil {
		return nil, nil, err
	}
	r.Header.Set("Authorization", "Bearer "+c.Token)
	if path == pathDial {
		r.Header.Set("Connection", "Upgrade")
		r.Header.Set("Upgrade", "bytes")
	}
	if err := r.Write(conn); err != nil {
		return nil, nil, err
	}
	reader := bufio.NewReader(conn)
	response, err := http.ReadResponse(reader, r)
	if err != nil {
		return nil, nil, err
	}
	if response.StatusCode >= http.StatusBadRequest {
		said, _ := io.ReadAll(io.LimitReader(response.Body, 500))
		return nil, nil, fmt.Errorf("%s: %s", response.Status, bytes.TrimSpace(said))
	}
	if response.StatusCode == http.StatusSwitchingProtocols {
		response.Body = io.NopCloser(reader)
	}
	return conn, response, nil
}
