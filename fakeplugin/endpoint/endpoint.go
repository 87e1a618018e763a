// Package endpoint names the addresses of the fake plugin's servers, and listens on them: a socket file (unix:///path),
// an abstract Linux socket (unix:///@name) or, for control APIs only, TCP (tcp://host:port).
package endpoint

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strings"

	"k8s.io/kms/pkg/util"

	"github.com/kmsharness/kmsharness/internal/host"
)

// MaxPathBytes is the longest path of a socket file: sun_path holds 108 bytes with its terminating NUL (unix(7)).
const MaxPathBytes = 107

// Endpoint is a parsed address. The zero value is no endpoint.
type Endpoint struct {
	Network string // "unix" or "tcp"
	Address string // a path, "@name" or "host:port"
}

// Parse reads unix:///path, unix:///@name or tcp://host:port. The rules for unix are kube-apiserver's own.
func Parse(s string) (Endpoint, error) {
	if address, ok := strings.CutPrefix(s, "tcp://"); ok {
		if _, _, err := net.SplitHostPort(address); err != nil {
			return Endpoint{}, fmt.Errorf("endpoint %q: expected tcp://HOST:PORT", s)
		}
		return Endpoint{"tcp", address}, nil
	}
	return ParseUnix(s)
}

// ParseUnix is Parse for a KMS v2 endpoint, which is never TCP.
func ParseUnix(s string) (Endpoint, error) {
	path, err := util.ParseEndpoint(s)
	if err != nil {
		return Endpoint{}, fmt.Errorf("endpoint %q: expected unix:///PATH or unix:///@NAME: %w", s, err)
	}
	e := Endpoint{"unix", path}
	switch {
	case path == "" || path == "/" || path == "@":
		return Endpoint{}, fmt.Errorf("endpoint %q: expected unix:///PATH or unix:///@NAME", s)
	case len(path) > MaxPathBytes:
		return Endpoint{}, fmt.Errorf("endpoint %q: the path has %d bytes, a socket's path holds at most %d", s, len(path), MaxPathBytes)
	case e.IsFile() && !filepath.IsAbs(path):
		return Endpoint{}, fmt.Errorf("endpoint %q: the path must be absolute", s)
	}
	return e, nil
}

// IsFile says whether the endpoint is a socket file.
func (e Endpoint) IsFile() bool { return e.Network == "unix" && !strings.HasPrefix(e.Address, "@") }

// IsUnix says whether the endpoint is a unix socket, with or without a file.
func (e Endpoint) IsUnix() bool { return e.Network == "unix" }

// IsZero says whether e is no endpoint.
func (e Endpoint) IsZero() bool { return e == Endpoint{} }

// String is the form that Parse reads.
func (e Endpoint) String() string {
	switch {
	case e.IsZero():
		return ""
	case e.Network == "tcp":
		return "tcp://" + e.Address
	case e.IsFile():
		return "unix://" + e.Address
	default:
		return "unix:///" + e.Address
	}
}

// Dial connects to e from a host.
func (e Endpoint) Dial(ctx context.Context, h host.Host) (net.Conn, error) {
	if e.IsZero() {
		return nil, errors.New("dial: no endpoint given")
	}
	conn, err := h.Dial(ctx, e.Network, e.Address)
	if err != nil {
		return nil, fmt.Errorf("dial %s: %w", e, err)
	}
	return conn, nil
}
