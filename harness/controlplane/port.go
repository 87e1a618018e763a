package controlplane

import (
	"fmt"
	"strconv"

	"golang.org/x/sys/unix"
)

// port is a TCP port of 127.0.0.1 that belongs to one server, also while that is not running.
//
// The kernel picks it, for a socket that is bound but never listens. With SO_REUSEPORT on both sides the server, which
// runs as the same user, can bind it as well; nobody else gets it: the kernel gives a bound port neither to a bind to
// port 0 nor to an outgoing connection. So there is no moment at which another process could take it, and it stays the
// same when the server is started again.
type port struct {
	fd     int
	number int
}

func reservePort() (*port, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("reserve a port: %w", err)
	}
	number, err := bindAny(fd)
	if err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("reserve a port: %w", err)
	}
	return &port{fd: fd, number: number}, nil
}

func bindAny(fd int) (int, error) {
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1); err != nil {
		return 0, err
	}
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return 0, err
	}
	name, err := unix.Getsockname(fd)
	if err != nil {
		return 0, err
	}
	in4, ok := name.(*unix.SockaddrInet4)
	if !ok {
		return 0, fmt.Errorf("unexpected socket address %T", name)
	}
	return in4.Port, nil
}

func (p *port) String() string { return strconv.Itoa(p.number) }

// addr is host:port.
func (p *port) addr() string { return "127.0.0.1:" + p.String() }

// free gives the port back. It is safe to call twice.
func (p *port) free() error {
	if p.fd < 0 {
		return nil
	}
	fd := p.fd
	p.fd = -1
	return unix.Close(fd)
}
