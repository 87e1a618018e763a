package altsvc

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/utils/clock"
)

// Defaults of Options.
const (
	// DefaultAuthority is a name in the serving certificate of every API server.
	DefaultAuthority = "kubernetes.default"
	// DefaultMaxAge is how long an API server keeps serving after it has become unready (shutdown-delay-duration of OpenShift).
	DefaultMaxAge = 70 * time.Second
	// DefaultBlock is how long a network error blocks an alternative.
	DefaultBlock = 30 * time.Second
	// DefaultDialTimeout bounds connecting to an alternative, TLS included. Until it ends, a request waits.
	DefaultDialTimeout = 5 * time.Second
	// DefaultPingAfter and DefaultPingTimeout find a dead connection in 15 s, well before a node lease (40 s) runs out.
	DefaultPingAfter   = 10 * time.Second
	DefaultPingTimeout = 5 * time.Second
	// DefaultIdleTimeout is that of client-go.
	DefaultIdleTimeout = 90 * time.Second
)

// Options of New and Wrap. The zero value means the defaults.
type Options struct {
	// Static lists alternatives that are used in addition to those from responses: hosts, host:port pairs or https URLs. The
	// default port is the origin's. Alternatives of this list do not expire.
	Static []string
	// Authority is the name that alternatives are addressed by, in the Host field and in TLS, and that their certificates
	// must be valid for. The default is DefaultAuthority.
	Authority string
	// OriginAuthority addresses alternatives by the origin's name, as RFC 7838 requires of general clients. Authority is ignored.
	OriginAuthority bool
	// MaxAge limits how long an alternative from a response is used for new connections.
	MaxAge time.Duration
	// Block is how long a network error blocks an alternative.
	Block       time.Duration
	DialTimeout time.Duration
	// PingAfter is how long a connection is silent until a PING checks it, and PingTimeout how long the answer may take.
	PingAfter   time.Duration
	PingTimeout time.Duration
	IdleTimeout time.Duration

	// Dial opens TCP connections to alternatives. Wrap takes it from the rest.Config.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Proxy returns the proxy of a request. No alternative is used for a request with a proxy (RFC 7838, section 2.4). The
	// default is that of client-go. Wrap takes it from the rest.Config.
	Proxy func(*http.Request) (*url.URL, error)
	// DisableCompression is as in http.Transport. Wrap takes it from the rest.Config.
	DisableCompression bool

	// LocalAddresses returns the addresses of this machine. The default reads them from the network interfaces.
	LocalAddresses func() ([]netip.Addr, error)
	// Clock is for tests.
	Clock clock.PassiveClock
}

// complete returns o with defaults.
func (o Options) complete() Options {
	o.Authority = cmp.Or(o.Authority, DefaultAuthority)
	o.MaxAge = cmp.Or(o.MaxAge, DefaultMaxAge)
	o.Block = cmp.Or(o.Block, DefaultBlock)
	o.DialTimeout = cmp.Or(o.DialTimeout, DefaultDialTimeout)
	o.PingAfter = cmp.Or(o.PingAfter, DefaultPingAfter)
	o.PingTimeout = cmp.Or(o.PingTimeout, DefaultPingTimeout)
	o.IdleTimeout = cmp.Or(o.IdleTimeout, DefaultIdleTimeout)
	if o.Dial == nil {
		o.Dial = (&net.Dialer{KeepAlive: 30 * time.Second}).DialContext
	}
	if o.Proxy == nil {
		o.Proxy = utilnet.NewProxierWithNoProxyCIDR(http.ProxyFromEnvironment)
	}
	if o.LocalAddresses == nil {
		o.LocalAddresses = interfaceAddresses
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return o
}

func interfaceAddresses() ([]netip.Addr, error) {
	all, err := net.InterfaceAddrs()
	if err != nil {
		return nil, fmt.Errorf("list addresses of network interfaces: %w", err)
	}
	var local []netip.Addr
	for _, a := range all {
		if prefix, err := netip.ParsePrefix(a.String()); err == nil {
			local = append(local, prefix.Addr().Unmap())
		}
	}
	return local, nil
}

// httpsPort is the port of an https URL that has none.
const httpsPort = "443"

// parseOrigin returns the host of an https URL as it stands there, the host's name, and its canonical host:port.
func parseOrigin(origin string) (host, name, address string, err error) {
	u, err := url.Parse(origin)
	if err != nil {
		return "", "", "", fmt.Errorf("parse origin %q: %w", origin, err)
	}
	if u.Scheme != "https" {
		return "", "", "", fmt.Errorf("parse origin %q: expected an https URL: alternatives are used over TLS only", origin)
	}
	address, err = parseAddress(u.Host, httpsPort)
	if err != nil {
		return "", "", "", fmt.Errorf("parse origin %q: %w", origin, err)
	}
	return u.Host, u.Hostname(), address, nil
}

// ParseStatic returns the host:port pairs of a list such as Options.Static. The default port is that of the origin (host:port).
func ParseStatic(list []string, originAddress string) ([]string, error) {
	_, port, err := net.SplitHostPort(originAddress)
	if err != nil {
		return nil, fmt.Errorf("read port of origin %q: %w", originAddress, err)
	}
	var addresses []string
	for _, text := range list {
		authority := text
		if strings.Contains(text, "://") {
			u, err := url.Parse(text)
			if err != nil || u.Scheme != "https" || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" {
				return nil, fmt.Errorf("parse static alternative %q: expected a host, host:port or https URL without path", text)
			}
			authority = u.Host
		}
		address, err := parseAddress(authority, port)
		if err != nil {
			return nil, fmt.Errorf("parse static alternative %q: %w", text, err)
		}
		addresses = append(addresses, address)
	}
	return addresses, nil
}

// parseAddress returns the canonical host:port of an authority that may lack the port, or of an IPv6 address without brackets.
func parseAddress(authority, standardPort string) (string, error) {
	if ip, err := netip.ParseAddr(authority); err == nil && ip.Is6() {
		authority = "[" + authority + "]"
	}
	if strings.HasSuffix(authority, "]") || !strings.Contains(authority, ":") {
		authority += ":" + standardPort
	}
	host, port, ok := splitAuthority(authority)
	if !ok || host == "" {
		return "", fmt.Errorf("%q is not a valid host with an optional port from 1 to 65535", authority)
	}
	return net.JoinHostPort(host, strconv.Itoa(int(port))), nil
}
