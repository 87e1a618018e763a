package netfault

import (
	"context"
	"fmt"
	"net"
	"time"
)

// member is one upstream of a load balancer, and the fault on the way there.
type member struct {
	name, upstream string
	control        *control
}

// dial connects to the member through its fault.
func (m *member) dial(ctx context.Context, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	f, err := m.control.waitWhile(ctx, func(f Fault) bool { return f.Mode == Cut })
	if err != nil {
		return nil, fmt.Errorf("dial %s: %w", m.name, err)
	}
	if f.Mode == Reset {
		return nil, fmt.Errorf("dial %s: refused", m.name)
	}
	return dial(ctx, m.upstream, timeout)
}
