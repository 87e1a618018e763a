package agent

import (
	"io"
	"net"
	"sync"
)

// Splice passes bytes between two connections until both directions have ended, and closes them.
func Splice(a, b net.Conn) {
	var both sync.WaitGroup
	pass := func(to, from net.Conn) {
		_, _ = io.Copy(to, from) // an end with an error is an end
		if half, ok := to.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
			return
		}
		_ = to.Close()
	}
	both.Go(func() { pass(a, b) })
	both.Go(func() { pass(b, a) })
	both.Wait()
	_, _ = a.Close(), b.Close()
}
