package advertise

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kmsharness/kmsharness/altsvc"
)

// Headers in which a front proxy names the user of a request (--requestheader-username-headers, --requestheader-group-headers).
const (
	userHeader    = "X-Remote-User"
	groupHeader   = "X-Remote-Group"
	remoteHeaders = "X-Remote-"
)

const (
	// frontDialTimeout bounds a connect to the API server behind a Front, which is on the same machine.
	frontDialTimeout = time.Second
	// frontPing is how long a connection to the API server is silent until a PING checks it, and how long the answer may take: a client's own
	// PINGs end at the Front.
	frontPing = 2 * time.Second
	// frontLinger is how long a client's connection outlives the one to the API server, so that the client gets the whole of its last response.
	frontLinger = 100 * time.Millisecond
)

// anonymous is the user of a request without credentials.
const anonymous = "system:anonymous"

// FrontOptions of NewFront.
type FrontOptions struct {
	// Listen is where clients connect, HOST:PORT. The default is a free port of 127.0.0.1.
	Listen string
	// Upstream is the API server, host:port.
	Upstream string
	// Serving is the certificate that clients see: that of the API server, valid for altsvc.DefaultAuthority.
	Serving tls.Certificate
	// Authority signs the certificates of the API server and of clients. A client without one is anonymous, or has a token.
	Authority *x509.CertPool
	// Proxy is the front proxy's client certificate. Its authority (--requestheader-client-ca-file) must not be that of clients: else a request
	// with a token would be one of the proxy's own.
	Proxy tls.Certificate
	// Field says which clients get the Alt-Svc field, and what is in it.
	Field Options
}

// Front is a proxy in front of one API server. It terminates TLS and adds the Alt-Svc field, as an API server with the feature gate would. Each
// connection of a client has one of its own behind it, and both end together: a client meets an API server that does not run as it would without
// the Front. It has no upgraded connections (exec, attach, port-forward).
type Front struct {
	listener net.Listener
	server   *http.Server
	served   chan struct{}
}

// NewFront serves. The owner must Close it.
func NewFront(o FrontOptions) (*Front, error) {
	handler, err := Handler(&httputil.ReverseProxy{
		Rewrite:       rewrite(o.Upstream),
		Transport:     roundTripper(func(r *http.Request) (*http.Response, error) { return connectionOf(r).behind.RoundTrip(r) }),
		FlushInterval: -1, // watches
		ModifyResponse: func(r *http.Response) error {
			if r.Request.Header.Get(userHeader) == anonymous { // the API server ends their connections after each response (GOAWAY)
				r.Header.Set("Connection", "close")
			}
			return nil
		},
		ErrorLog:     log.New(io.Discard, "", 0),
		ErrorHandler: fail,
	}, o.Field)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", cmp.Or(o.Listen, "127.0.0.1:0"))
	if err != nil {
		return nil, fmt.Errorf("listen in front of the API server %s: %w", o.Upstream, err)
	}
	f := &Front{listener: listener, served: make(chan struct{}), server: &http.Server{
		Handler:           handler,
		TLSConfig:         &tls.Config{Certificates: []tls.Certificate{o.Serving}, ClientCAs: o.Authority, ClientAuth: tls.VerifyClientCertIfGiven, MinVersion: tls.VersionTLS12},
		ReadHeaderTimeout: time.Minute,
		ErrorLog:          log.New(io.Discard, "", 0),
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, connectionKey{}, c.(*tls.Conn).NetConn())
		},
		ConnState: func(c net.Conn, state http.ConnState) {
			c.(*tls.Conn).NetConn().(*connection).became(state)
		},
	}}
	go func() {
		defer close(f.served)
		_ = f.server.ServeTLS(paired{listener, o}, "", "") // until Close
	}()
	return f, nil
}

// Addr is where it listens, host:port.
func (f *Front) Addr() string { return f.listener.Addr().String() }

// Close ends all connections. Then no goroutine is left.
func (f *Front) Close() error {
	err := f.server.Close()
	<-f.served
	return err
}

// paired accepts a client's connection together with one to the API server.
type paired struct {
	net.Listener
	options FrontOptions
}

// Accept implements net.Listener. Where the API server takes no connection, the client's is reset, and the next one is waited for.
func (p paired) Accept() (net.Conn, error) {
	for {
		client, err := p.Listener.Accept()
		if err != nil {
			return nil, err
		}
		upstream, err := net.DialTimeout("tcp", p.options.Upstream, frontDialTimeout)
		if err != nil {
			reset(client)
			continue
		}
		return &connection{Conn: client, upstream: upstream, options: p.options}, nil
	}
}

func reset(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.Close()
}

// connection is a client's, with the one to the API server.
type connection struct {
	net.Conn
	upstream net.Conn
	options  FrontOptions
	begin    sync.Once
	behind   *http.Transport // on upstream alone, from the first read on
	err      error           // why there is none
	over     sync.Once

	mu   sync.Mutex
	busy bool        // a response is being sent
	end  *time.Timer // upstream has ended
}

type connectionKey struct{}

func connectionOf(r *http.Request) *connection {
	c, _ := r.Context().Value(connectionKey{}).(*connection)
	return c
}

// Read implements net.Conn. The API server shakes hands first, so that one that stands still does not do so with a client either.
func (c *connection) Read(b []byte) (int, error) {
	c.begin.Do(func() { c.behind, c.err = c.connect() })
	if c.err != nil {
		return 0, c.err
	}
	return c.Conn.Read(b)
}

// Close implements net.Conn: it ends both.
func (c *connection) Close() error {
	err := net.ErrClosed
	c.over.Do(func() {
		c.mu.Lock()
		if c.end != nil {
			c.end.Stop()
		}
		c.mu.Unlock()
		err = errors.Join(c.upstream.Close(), c.Conn.Close())
	})
	return err
}

// became notes whether a response is being sent. Upstream may end with it.
func (c *connection) became(state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.busy = state == http.StateActive
	if c.end != nil && !c.busy {
		c.end.Reset(frontLinger)
	}
}

// upstreamEnded ends the client's connection, too, once the responses to it were sent.
func (c *connection) upstreamEnded() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.end == nil {
		c.end = time.AfterFunc(frontLinger, c.endUnlessBusy)
	}
}

func (c *connection) endUnlessBusy() {
	c.mu.Lock()
	busy := c.busy
	c.mu.Unlock()
	if !busy {
		_ = c.Close()
	}
}

// bound is upstream as HTTP/2 uses it: the client's connection ends with it.
type bound struct {
	net.Conn
	c *connection
}

func (b bound) Close() error {
	b.c.upstreamEnded()
	return b.Conn.Close()
}

// connect begins to speak with the API server.
func (c *connection) connect() (*http.Transport, error) {
	o := c.options
	secured := tls.Client(bound{c.upstream, c}, &tls.Config{RootCAs: o.Authority, ServerName: altsvc.DefaultAuthority, NextProtos: []string{"h2"},
		Certificates: []tls.Certificate{o.Proxy}, MinVersion: tls.VersionTLS12})
	if err := secured.Handshake(); err != nil { // until either side ends its connection
		return nil, fmt.Errorf("connect to the API server %s: %w", o.Upstream, err)
	}
	var taken atomic.Bool
	return &http.Transport{
		ForceAttemptHTTP2: true, DisableCompression: true, MaxConnsPerHost: 1, HTTP2: &http.HTTP2Config{SendPingTimeout: frontPing, PingTimeout: frontPing},
		DialTLSContext: func(context.Context, string, string) (net.Conn, error) {
			if taken.Swap(true) {
				return nil, net.ErrClosed
			}
			return secured, nil
		},
	}, nil
}

// rewrite names the user of the client's certificate in the headers of a front proxy. Such headers of the client's are removed.
func rewrite(upstream string) func(*httputil.ProxyRequest) {
	return func(p *httputil.ProxyRequest) {
		p.Out.URL.Scheme, p.Out.URL.Host, p.Out.Host = "https", upstream, p.In.Host
		for name := range p.Out.Header {
			if strings.HasPrefix(name, remoteHeaders) {
				p.Out.Header.Del(name)
			}
		}
		name, groups := CertificateUser(p.In)
		switch {
		case name == "" && p.In.Header.Get("Authorization") != "":
			return // the API server reads the token
		case name == "":
			name, groups = anonymous, []string{"system:unauthenticated"}
		}
		p.Out.Header.Set(userHeader, name)
		for _, group := range groups {
			p.Out.Header.Add(groupHeader, group)
		}
	}
}

// fail ends the connection of a request that the API server did not answer, as an API server that is gone would.
func fail(_ http.ResponseWriter, r *http.Request, _ error) {
	if r.Context().Err() == nil {
		_ = connectionOf(r).Close()
	}
	panic(http.ErrAbortHandler)
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
