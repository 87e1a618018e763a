package netfault

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"

	"github.com/kmsharness/kmsharness/internal/host"
)

// server accepts connections on a port of its own and gives each to a handler, which owns it.
type server struct {
	listener net.Listener
	ctx      context.Context // ends with the server; handlers must return then
	cancel   context.CancelFunc
	handlers sync.WaitGroup
}

// listen accepts at an address of a host; with port 0 at a free one.
func listen(h host.Host, name, address string, handle func(ctx context.Context, client net.Conn)) (*server, error) {
	l, err := h.Listen(context.Background(), "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("open link %s: %w", name, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &server{listener: l, ctx: ctx, cancel: cancel}
	s.handlers.Go(func() { s.accept(handle) })
	return s, nil
}

func (s *server) accept(handle func(context.Context, net.Conn)) {
	for {
		client, err := s.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue // the client has gone before it was accepted
		}
		s.handlers.Go(func() { handle(s.ctx, client) })
	}
}

func (s *server) addr() string { return s.listener.Addr().String() }

// end accepts no more, tells the handlers, ends their connections by reset, and returns when they have ended.
func (s *server) end(reset func()) error {
	s.cancel()
	err := s.listener.Close()
	reset()
	s.handlers.Wait()
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}
