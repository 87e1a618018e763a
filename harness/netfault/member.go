package netfault

import (
	"context"
	"net"
	"time"

	"github.com/kmsharness/kmsharness/internal/host"
)

// member is one upstream of a load balancer, and the fault on the way there.
type member struct {
	host           host.Host
	name, upstream string
	control        *control
}

// serve connects the client to the member through its fault until one of them ends it; false if the member cannot be reached.
func (m *member) serve(ctx context.Context, client net.Conn, timeout time.Duration) bool {
	dialling, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	f, err := m.control.established(dialling)
	switch {
	case err != nil || !f.admits():
		return false
	case f.mutes():
		hold(client, m.control)
		return true
	}
	upstream, err := dial(dialling, m.host, m.upstream, timeout)
	if err != nil {
		return false
	}
	join(client, upstream, m.control)
	return true
}
