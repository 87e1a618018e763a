package controlplane

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"
)

// address is a loopback address of a control plane's own, out of 127.0.0.0/8, with the ports of its programs. Nothing else on the machine binds there, but
// for programs that bind a port on all addresses, so a port that was free stays free until the program runs, and after it was restarted.
type address struct {
	ip   string
	hold net.Listener // keeps other control planes away

	mu   sync.Mutex
	last int // port that was given out
}

// claimPort is the port that says that an address is taken. Other ports come after firstPort, below those that the kernel picks.
const claimPort, firstPort = "1024", 20000

// claims bounds the search: with a hundred control planes on a machine the second try succeeds.
const claims = 32

func claimAddress() (*address, error) {
	var err error
	for range claims {
		ip := anyLoopback()
		var hold net.Listener
		if hold, err = net.Listen("tcp4", net.JoinHostPort(ip, claimPort)); err == nil {
			return &address{ip: ip, hold: hold, last: firstPort}, nil
		}
		if !errors.Is(err, unix.EADDRINUSE) {
			break
		}
	}
	return nil, fmt.Errorf("claim a loopback address: %w", err)
}

// anyLoopback is not 127.0.*: 127.0.0.1 is everybody's, and systemd-resolved listens on 127.0.0.53.
func anyLoopback() string {
	return fmt.Sprintf("127.%d.%d.%d", 1+rand.IntN(254), rand.IntN(256), 1+rand.IntN(254))
}

// port is one that no program of the control plane has, as host:port.
func (a *address) port() (string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for {
		a.last++
		l, err := net.Listen("tcp4", net.JoinHostPort(a.ip, strconv.Itoa(a.last)))
		if errors.Is(err, unix.EADDRINUSE) {
			continue
		}
		if err != nil {
			return "", fmt.Errorf("find a free port: %w", err)
		}
		return l.Addr().String(), l.Close()
	}
}

// close gives the address back. It is safe to call twice.
func (a *address) close() error {
	if err := a.hold.Close(); !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}
