package netfault

import (
	"context"
	"net"
	"time"

	"github.com/kmsharness/kmsharness/internal/host"
)

// upstreamTimeout bounds a dial on the loopback interface, which answers at once unless the upstream's backlog is full.
const upstreamTimeout = 10 * time.Second

// member is the upstream of a link, or one of a load balancer's, and the fault on the path to it.
type member struct {
	host           host.Host
	name, upstream string
	control        *control
}

func newMember(h host.Host, name, upstream string) *member {
	return &member{host: h, name: name, upstream: upstream, control: newControl(name)}
}

// serve connects the client to the upstream through the fault until one of them ends it; false if the upstream cannot be reached before ctx ends.
func (m *member) serve(ctx context.Context, client net.Conn) bool {
	f, err := m.control.established(ctx)
	switch {
	case err != nil || !f.admits():
		return false
	case f.mutes():
		hold(client, m.control)
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, upstreamTimeout)
	defer cancel()
	upstream, err := m.host.Dial(ctx, "tcp", m.upstream)
	if err != nil {
		return false
	}
	join(client, upstream, m.control)
	return true
}

// join carries bytes between two connections, and owns both.
func join(client, upstream net.Conn, c *control) {
	p := newPair(client, upstream, c)
	if !c.admit(p, Fault.admits) {
		p.reset()
		return
	}
	p.run()
}
