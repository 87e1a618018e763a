package server

import (
	"net"
	"sync"
	"sync/atomic"
)

// listener tracks the connections that it accepts, or hangs up on them.
type listener struct {
	net.Listener
	conns   *conns
	hangUp  *atomic.Bool
	connect func(*conn) error // to the plugin behind the server
}

// Accept implements net.Listener.
func (l listener) Accept() (net.Conn, error) {
	for {
		raw, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if l.hangUp.Load() {
			_ = raw.Close()
			continue
		}
		accepted := &conn{Conn: raw, all: l.conns}
		if err := l.connect(accepted); err != nil {
			_ = raw.Close()
			continue
		}
		l.conns.keep(accepted)
		return accepted, nil
	}
}

// silence accepts on l and never says a word, until the returned function is called.
func silence(l net.Listener) (stop func()) {
	var accepting sync.WaitGroup
	held := &conns{open: map[*conn]struct{}{}}
	accepting.Go(func() {
		for {
			raw, err := l.Accept()
			if err != nil {
				return
			}
			held.keep(&conn{Conn: raw, all: held})
		}
	})
	return func() {
		_ = l.Close()
		accepting.Wait()
		held.closeAll()
	}
}
