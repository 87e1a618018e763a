package altsvc

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"k8s.io/klog/v2"
)

// Services is the alternatives of one origin with the connections to them. All round trippers that it wraps share them. It is
// safe for concurrent use. The owner must Close it.
type Services struct {
	host      string // of the origin, as in its URL
	authority string // of requests to alternatives
	options   Options
	conns     *connections

	mu     sync.Mutex
	table  table
	closed bool
}

// New returns the alternatives of an origin, an https URL. config verifies the certificates of alternatives; its ServerName is
// ignored. Without verification anybody could be an alternative, so InsecureSkipVerify is refused.
func New(origin string, config *tls.Config, o Options) (*Services, error) {
	if config == nil {
		config = &tls.Config{}
	}
	if config.InsecureSkipVerify && config.VerifyPeerCertificate == nil && config.VerifyConnection == nil {
		return nil, errors.New("altsvc: create: the TLS configuration verifies no certificates: add the certificate authority of the API servers")
	}
	host, name, address, err := parseOrigin(origin)
	if err != nil {
		return nil, fmt.Errorf("altsvc: create: %w", err)
	}
	static, err := ParseStatic(o.Static, address)
	if err != nil {
		return nil, fmt.Errorf("altsvc: create: %w", err)
	}
	o = o.complete()
	s := &Services{host: host, authority: o.Authority, options: o, table: table{origin: address, maxAge: o.MaxAge, block: o.Block, static: static}}
	serverName := o.Authority
	if o.OriginAuthority {
		s.authority, serverName = host, name
	}
	s.conns = newConnections(config, serverName, o)
	return s, nil
}

// Close closes all connections to alternatives, with the requests that use them. Wrapped round trippers then use the origin.
func (s *Services) Close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.conns.close()
}

// Current returns the host:port of the alternative in use, or "" if it is the origin. It is for logs and metrics.
func (s *Services) Current() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.table.current
}

// NetworkChanged removes alternatives without the parameter "persist=1" (RFC 7838, section 2.2) and unblocks alternatives with
// network errors. A program that observes its network calls it after a change.
func (s *Services) NetworkChanged() {
	s.mu.Lock()
	s.table.networkChanged()
	known := s.table.addresses()
	s.mu.Unlock()
	s.conns.retain(known)
}

// next returns the alternative for the next attempt of a request, or "" for the origin.
func (s *Services) next(tried []string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return ""
	}
	return s.table.next(s.situation(tried))
}

func (s *Services) situation(tried []string) situation {
	return situation{now: s.options.Clock.Now(), tried: tried, connected: s.conns.connected, local: s.local}
}

func (s *Services) local() []netip.Addr {
	local, err := s.options.LocalAddresses()
	if err != nil {
		klog.Background().Error(err, "Alternatives on this machine are not preferred")
	}
	return local
}

// used records that an alternative answered.
func (s *Services) used(address string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.table.used(address, s.situation(nil))
}

// Leave blocks the alternative in use for a time, if there is one. A client calls it that knows better than the connection whether a
// server serves it: one that lost etcd keeps its connections, and answers with errors of its own or not at all.
func (s *Services) Leave(ctx context.Context, reason error) {
	if current := s.Current(); current != "" {
		s.block(ctx, current, false, reason)
	}
}

// failed blocks an alternative after an error.
func (s *Services) failed(ctx context.Context, address string, err error) {
	s.block(ctx, address, isCertificateError(err), err)
}

func (s *Services) block(ctx context.Context, address string, forever bool, err error) {
	s.mu.Lock()
	news := !s.closed && s.table.failed(s.options.Clock.Now(), address, forever)
	s.mu.Unlock()
	if !news { // requests in parallel fail together
		return
	}
	if forever {
		klog.FromContext(ctx).Error(err, "Alternative API server is not used any more: its certificate is not valid", "address", address, "authority", s.authority)
		return
	}
	klog.FromContext(ctx).Info("Alternative API server is not used for a time", "address", address, "duration", s.options.Block, "err", err)
}

// misdirected removes an alternative after status 421.
func (s *Services) misdirected(address string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.table.misdirected(s.options.Clock.Now(), address)
}

// learn reads the alternatives of a response. Only responses over HTTP/2 and TLS count, and none with status 421.
func (s *Services) learn(ctx context.Context, res *http.Response) {
	values := res.Header["Alt-Svc"]
	if len(values) == 0 || res.ProtoMajor != 2 || res.TLS == nil || res.StatusCode == http.StatusMisdirectedRequest {
		return
	}
	text := strings.Join(values, ",")
	s.mu.Lock()
	changed, err := s.table.learn(s.options.Clock.Now(), text, age(res.Header))
	var known []string
	if changed {
		known = s.table.addresses()
	}
	s.mu.Unlock()
	if err != nil {
		klog.FromContext(ctx).V(4).Info("Alternatives of a response are ignored", "err", err)
	}
	if changed {
		s.conns.retain(known)
	}
}

// age is how long a response was in caches (RFC 7234, section 5.1).
func age(h http.Header) time.Duration {
	if text := h.Get("Age"); text != "" {
		if seconds, ok := deltaSeconds(strings.TrimSpace(text)); ok {
			return seconds
		}
	}
	return 0
}

// matches reports whether the host of a URL is that of the origin.
func (s *Services) matches(host string) bool {
	if host == s.host {
		return true
	}
	address, err := parseAddress(host, httpsPort)
	return err == nil && address == s.table.origin // which never changes
}
