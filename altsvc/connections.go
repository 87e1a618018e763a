package altsvc

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"sync"
)

// connections has one HTTP/2 transport for each alternative, and owns all connections to alternatives.
type connections struct {
	tls     *tls.Config
	options Options

	// ctx ends dials when the owner closes.
	ctx    context.Context
	cancel context.CancelFunc

	mu         sync.Mutex
	transports map[string]*http.Transport
	open       map[*connection]struct{}
	closed     bool
}

// connection is a TCP connection to an alternative.
type connection struct {
	net.Conn
	owner   *connections
	address string
}

// dialError is a failure to connect: no byte of a request was sent.
type dialError struct {
	address string
	err     error
}

func (e *dialError) Error() string {
	return fmt.Sprintf("connect to alternative %s: %v", e.address, e.err)
}

func (e *dialError) Unwrap() error { return e.err }

var errClosed = errors.New("altsvc: closed")

func newConnections(config *tls.Config, serverName string, o Options) *connections {
	config = config.Clone()
	config.ServerName = serverName
	config.NextProtos = []string{protocol}
	config.MinVersion = max(config.MinVersion, tls.VersionTLS12)
	c := &connections{tls: config, options: o, transports: map[string]*http.Transport{}, open: map[*connection]struct{}{}}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c
}

func (c *connections) transport(address string) (*http.Transport, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, errClosed
	}
	t := c.transports[address]
	if t == nil {
		t = &http.Transport{
			DialTLSContext:     c.dial,
			Protocols:          new(http.Protocols),
			HTTP2:              &http.HTTP2Config{SendPingTimeout: c.options.PingAfter, PingTimeout: c.options.PingTimeout},
			IdleConnTimeout:    c.options.IdleTimeout,
			DisableCompression: c.options.DisableCompression,
		}
		t.Protocols.SetHTTP2(true)
		c.transports[address] = t
	}
	return t, nil
}

// dial connects to an alternative. It fails unless the certificate is valid for the authority and HTTP/2 is negotiated.
func (c *connections) dial(ctx context.Context, network, address string) (net.Conn, error) {
	bounded, cancel := context.WithTimeout(ctx, c.options.DialTimeout)
	defer cancel()
	defer context.AfterFunc(c.ctx, cancel)()
	conn, err := c.dialTLS(bounded, network, address)
	if err == nil {
		return conn, nil
	}
	if c.ctx.Err() != nil {
		return nil, errClosed
	}
	if ctx.Err() != nil { // the request was cancelled: the alternative is not to blame
		return nil, fmt.Errorf("connect to alternative %s: %w", address, context.Cause(ctx))
	}
	return nil, &dialError{address: address, err: err}
}

func (c *connections) dialTLS(ctx context.Context, network, address string) (net.Conn, error) {
	raw, err := c.options.Dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	conn := tls.Client(c.track(raw, address), c.tls)
	if err := conn.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		return nil, err
	}
	if negotiated := conn.ConnectionState().NegotiatedProtocol; negotiated != protocol {
		_ = conn.Close()
		return nil, fmt.Errorf("negotiated protocol %q, expected %q", negotiated, protocol)
	}
	return conn, nil
}

// track makes c the owner of a connection.
func (c *connections) track(raw net.Conn, address string) net.Conn {
	conn := &connection{Conn: raw, owner: c, address: address}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed { // the handshake fails
		_ = raw.Close()
		return conn
	}
	c.open[conn] = struct{}{}
	return conn
}

// Close removes the connection from its owner.
func (c *connection) Close() error {
	c.owner.mu.Lock()
	delete(c.owner.open, c)
	c.owner.mu.Unlock()
	return c.Conn.Close()
}

// connected reports whether there is a connection to an alternative.
func (c *connections) connected(address string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for conn := range c.open {
		if conn.address == address {
			return true
		}
	}
	return false
}

// retain closes idle connections to all alternatives but those listed. Requests in progress are not interrupted; their
// connections end with them or after the idle timeout.
func (c *connections) retain(addresses []string) {
	c.mu.Lock()
	var removed []*http.Transport
	for address, t := range c.transports {
		if !slices.Contains(addresses, address) {
			removed = append(removed, t)
			delete(c.transports, address)
		}
	}
	c.mu.Unlock()
	for _, t := range removed {
		t.CloseIdleConnections()
	}
}

// closeIdle closes all idle connections.
func (c *connections) closeIdle() {
	c.mu.Lock()
	all := slices.Collect(maps.Values(c.transports))
	c.mu.Unlock()
	for _, t := range all {
		t.CloseIdleConnections()
	}
}

// close ends all dials and connections, with the requests that use them.
func (c *connections) close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.cancel()
	c.closeIdle()
	c.mu.Lock()
	open := slices.Collect(maps.Keys(c.open))
	c.mu.Unlock()
	for _, conn := range open {
		_ = conn.Close()
	}
}

// isCertificateError reports whether the server's certificate was not accepted.
func isCertificateError(err error) bool {
	var verification *tls.CertificateVerificationError
	var authority x509.UnknownAuthorityError
	var host x509.HostnameError
	var invalid x509.CertificateInvalidError
	return errors.As(err, &verification) || errors.As(err, &authority) || errors.As(err, &host) || errors.As(err, &invalid)
}
