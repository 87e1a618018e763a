package controller

import (
	"io"
	"net"
	"sync"
	"testing"
)

// gate is a load balancer on one connection each: it passes, resets everything, or goes silent. A connection that was
// silent once stays so, as one through a balancer that went away without a word does.
type gate struct {
	testing.TB
	listener net.Listener
	upstream string
	mu       sync.Mutex
	mode     gateMode
	conns    map[net.Conn]bool
	running  sync.WaitGroup
}

type gateMode int

const (
	passing gateMode = iota
	resetting
	silent
)

func newGate(t testing.TB, upstream string) *gate {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	g := &gate{TB: t, listener: listener, upstream: upstream, conns: map[net.Conn]bool{}}
	g.running.Go(g.accept)
	t.Cleanup(func() {
		must(t, listener.Close())
		g.set(resetting)
		g.running.Wait()
	})
	return g
}

// set changes the mode. A reset ends every connection there is.
func (g *gate) set(mode gateMode) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.mode = mode
	for c := range g.conns {
		if mode == resetting {
			_ = c.Close()
		}
	}
}

func (g *gate) accept() {
	for {
		conn, err := g.listener.Accept()
		if err != nil {
			return
		}
		g.running.Go(func() { g.handle(conn) })
	}
}

func (g *gate) handle(client net.Conn) {
	server, err := net.Dial("tcp", g.upstream)
	if err != nil || !g.admit(client, server) {
		_ = client.Close()
		return
	}
	var both sync.WaitGroup
	dead := &sync.Map{}
	both.Go(func() { g.copy(server, client, dead) })
	g.copy(client, server, dead)
	both.Wait()
}

func (g *gate) admit(conns ...net.Conn) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, c := range conns {
		g.conns[c] = true
	}
	return g.mode != resetting
}

// copy ends both connections when one ends. What arrives while the gate is silent is lost, and all that follows.
func (g *gate) copy(to, from net.Conn, dead *sync.Map) {
	defer to.Close()
	defer from.Close()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		g.mu.Lock()
		if g.mode == silent {
			dead.Store("dead", true)
		}
		g.mu.Unlock()
		if _, lost := dead.Load("dead"); lost {
			continue
		}
		if _, err := to.Write(buffer[:n]); err != nil && err != io.EOF {
			return
		}
	}
}
