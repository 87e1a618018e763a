package local

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"

	"golang.org/x/sys/unix"
)

// address is a loopback address of a plane's own, out of 127.0.0.0/8. Programs that bind their port themselves get one
// on it: nothing else on the machine binds there, so a port that was free stays free until the program runs, and after it
// was restarted.
type address struct {
	ip   string
	hold net.Listener // keeps other planes away
}

// claimPort is the port that says that an address is taken.
const claimPort = "1024"

// claims bounds the search: with a hundred planes on a machine the second try succeeds.
const claims = 32

func claimAddress() (*address, error) {
	var err error
	for range claims {
		ip := anyLoopback()
		var hold net.Listener
		if hold, err = net.Listen("tcp4", net.JoinHostPort(ip, claimPort)); err == nil {
			return &address{ip: ip, hold: hold}, nil
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

func (a *address) port() (string, error) {
	l, err := net.Listen("tcp4", net.JoinHostPort(a.ip, "0"))
	if err != nil {
		return "", fmt.Errorf("find a free port: %w", err)
	}
	return l.Addr().String(), l.Close()
}

func (a *address) close() error { return a.hold.Close() }
