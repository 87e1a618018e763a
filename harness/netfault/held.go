package netfault

import (
	"io"
	"net"
)

// heldConn is a connection that was accepted and is never answered.
type heldConn struct{ client net.Conn }

func (h *heldConn) reset() { resetConn(h.client) }

// hold reads what a client says and answers nothing, until the client ends the connection or the control does. Reading on
// matters: a peer that reads nothing fills the client's buffers, and would be noticed by that.
func hold(client net.Conn, c *control) {
	h := &heldConn{client}
	if !c.admit(h, Fault.mutes) {
		h.reset()
		return
	}
	defer c.forget(h)
	_, _ = io.Copy(io.Discard, client) // its end is all that matters, however it comes
	_ = client.Close()
}
