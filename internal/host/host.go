// Package host is what a program needs of the machine that it runs on, beside files: a network, a clock, and an end. A simulation gives it a
// machine in memory.
package host

import (
	"context"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"os"

	"k8s.io/utils/clock"
)

// Host is a machine. What is nil is that of the machine itself, so that the zero Host is a real one.
type Host struct {
	// DialFunc connects, as net.Dialer does. A client of client-go that gets nil has a dialer of its own, which keeps connections alive.
	DialFunc func(ctx context.Context, network, address string) (net.Conn, error)
	// LookupFunc is the addresses of a name, as net.Resolver's LookupHost gives them.
	LookupFunc func(ctx context.Context, name string) ([]string, error)
	// AddressesFunc is the addresses of the machine; nil: those of its network interfaces.
	AddressesFunc func() ([]netip.Addr, error)
	// ListenFunc listens, as net.ListenConfig does. Of a unix socket there is a file, which stays when the listener is closed.
	ListenFunc func(ctx context.Context, network, address string) (net.Listener, error)
	// ClockOf is the wall clock, which may be wrong.
	ClockOf clock.WithTicker
	// RandomOf is where chance comes from, for one goroutine at a time.
	RandomOf *rand.Rand
	// WrapFunc is put around what sends a program's requests to the API; nil: nothing.
	WrapFunc func(http.RoundTripper) http.RoundTripper
	// EnvFunc is the value of an environment variable.
	EnvFunc func(name string) string
	// SeenFunc is where a file is that the program knows by a path.
	SeenFunc func(path string) string
	// AppendFunc opens a file to append to it.
	AppendFunc func(path string) (io.WriteCloser, error)
	// ExitFunc ends the program at once.
	ExitFunc func(code int)
}

// Dial connects.
func (h Host) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	if h.DialFunc != nil {
		return h.DialFunc(ctx, network, address)
	}
	return new(net.Dialer).DialContext(ctx, network, address)
}

// Lookup is the addresses of a name.
func (h Host) Lookup(ctx context.Context, name string) ([]string, error) {
	if h.LookupFunc != nil {
		return h.LookupFunc(ctx, name)
	}
	return net.DefaultResolver.LookupHost(ctx, name)
}

// Listen begins to listen.
func (h Host) Listen(ctx context.Context, network, address string) (net.Listener, error) {
	if h.ListenFunc != nil {
		return h.ListenFunc(ctx, network, address)
	}
	l, err := new(net.ListenConfig).Listen(ctx, network, address)
	if u, ok := l.(*net.UnixListener); ok {
		u.SetUnlinkOnClose(false)
	}
	return l, err
}

// Clock is the machine's.
func (h Host) Clock() clock.WithTicker {
	if h.ClockOf != nil {
		return h.ClockOf
	}
	return clock.RealClock{}
}

// Random is where chance comes from.
func (h Host) Random() *rand.Rand {
	if h.RandomOf != nil {
		return h.RandomOf
	}
	return rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))
}

// Wrap is WrapFunc, or leaves what it is given as it is.
func (h Host) Wrap(next http.RoundTripper) http.RoundTripper {
	if h.WrapFunc != nil {
		return h.WrapFunc(next)
	}
	return next
}

// Getenv is the value of an environment variable.
func (h Host) Getenv(name string) string {
	if h.EnvFunc != nil {
		return h.EnvFunc(name)
	}
	return os.Getenv(name)
}

// File is where a file is that the program knows by a path.
func (h Host) File(path string) string {
	if h.SeenFunc != nil {
		return h.SeenFunc(path)
	}
	return path
}

// Append opens a file to append to it; it is made if there is none.
func (h Host) Append(path string) (io.WriteCloser, error) {
	if h.AppendFunc != nil {
		return h.AppendFunc(path)
	}
	return os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
}

// Exit ends the program at once.
func (h Host) Exit(code int) {
	if h.ExitFunc != nil {
		h.ExitFunc(code)
		return
	}
	os.Exit(code)
}

// Alone reports whether the program has a process of its own, whose global settings it may change.
func (h Host) Alone() bool { return h.DialFunc == nil }
