package netfault

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/kmsharness/kmsharness/internal/host"
)

// LoadBalancer spreads new connections over its members in turn. It has no health checks: it tries the next member only
// when a dial fails, like the simplest balancers in front of control planes. A connection stays with its member.
type LoadBalancer struct {
	host    host.Host
	name    string
	timeout time.Duration
	server  *server

	mu      sync.Mutex
	members []*member
	frozen  []*member // the members that are used while the list is stale; nil: it is not
	next    int
	closed  bool
}

// Errors of LoadBalancer.
var (
	ErrMemberExists = errors.New("there is a member of this name already")
	ErrNoMember     = errors.New("there is no member of this name")
	ErrClosed       = errors.New("it is closed")
)

// NewLoadBalancer opens a load balancer without members on a host, at a free port of 127.0.0.1. It waits for a member that does not answer at all for dialTimeout,
// and then tries the next. A client that gives up before has lost its request.
// The owner must Close it.
func NewLoadBalancer(h host.Host, name string, dialTimeout time.Duration) (*LoadBalancer, error) {
	lb := &LoadBalancer{host: h, name: name, timeout: dialTimeout}
	s, err := listen(h, name, "127.0.0.1:0", lb.handle)
	if err != nil {
		return nil, err
	}
	lb.server = s
	return lb, nil
}

// Addr is where clients connect to (127.0.0.1:port); it never changes.
func (lb *LoadBalancer) Addr() string { return lb.server.addr() }

// Add makes upstream (host:port) the last member.
func (lb *LoadBalancer) Add(name, upstream string) error {
	lb.mu.Lock()
	defer lb.mu.Unlock()
	if lb.closed {
		return lb.errorf("add", name, ErrClosed)
	}
	if lb.find(name) >= 0 {
		return lb.errorf("add", name, ErrMemberExists)
	}
	lb.members = append(lb.members, &member{host: lb.host, name: name, upstream: upstream, control: newControl(name)})
	return nil
}

// Freeze lets the list of members become stale: until Update, members that are added are not used, and connections to those
// that are removed are tried and lost, as if nothing were at their address any more.
func (lb *LoadBalancer) Freeze() {
	lb.mu.Lock()
	defer lb.mu.Unlock()
	if lb.frozen == nil {
		lb.frozen = append(make([]*member, 0, len(lb.members)), lb.members...)
	}
}

// Update ends what Freeze began.
func (lb *LoadBalancer) Update() {
	lb.mu.Lock()
	defer lb.mu.Unlock()
	lb.frozen = nil
}

// Remove takes a member out and resets its connections.
func (lb *LoadBalancer) Remove(name string) error {
	lb.mu.Lock()
	defer lb.mu.Unlock()
	i := lb.find(name)
	if i < 0 {
		return lb.errorf("remove", name, ErrNoMember)
	}
	gone := lb.members[i].control
	gone.close()
	lb.members = slices.Delete(lb.members, i, i+1)
	if lb.frozen == nil {
		return nil
	}
	return gone.set(Fault{Mode: Cut})
}

// Set puts a fault in force between the load balancer and a member. Fault{} heals it.
//
//   - Cut: a black hole; connections fall silent, new dials take the dial timeout, then another member is tried.
//   - Reset: connections are reset, new dials are refused and another member is tried.
//   - Mute: connections fall silent, new dials succeed, even if nothing runs there, and nothing comes back; no other
//     member is tried.
//   - Slow: everything is delayed.
func (lb *LoadBalancer) Set(name string, f Fault) error {
	lb.mu.Lock()
	defer lb.mu.Unlock()
	i := lb.find(name)
	if i < 0 {
		return lb.errorf("set a fault on", name, ErrNoMember)
	}
	return lb.members[i].control.set(f)
}

// Close resets all connections and returns when every goroutine has ended. It is safe to call twice.
func (lb *LoadBalancer) Close() error {
	return lb.server.end(func() {
		lb.mu.Lock()
		defer lb.mu.Unlock()
		lb.closed = true
		for _, m := range lb.members {
			m.control.close()
		}
	})
}

func (lb *LoadBalancer) handle(ctx context.Context, client net.Conn) {
	for _, m := range lb.turn() {
		if m.serve(ctx, client, lb.timeout) {
			return
		}
	}
	resetConn(client) // no member can be reached
}

// turn is the order in which one connection tries the members.
func (lb *LoadBalancer) turn() []*member {
	lb.mu.Lock()
	defer lb.mu.Unlock()
	used := lb.members
	if lb.frozen != nil {
		used = lb.frozen
	}
	n := len(used)
	if n == 0 {
		return nil
	}
	first := lb.next % n
	if !lb.host.Alone() { // in virtual time what connections of one instant get does not depend on their order
		first = int(uint64(lb.host.Clock().Now().UnixNano()) * 0x9e3779b97f4a7c15 >> 33 % uint64(n))
	}
	lb.next = first + 1
	return slices.Concat(used[first:], used[:first])
}

func (lb *LoadBalancer) find(name string) int {
	return slices.IndexFunc(lb.members, func(m *member) bool { return m.name == name })
}

func (lb *LoadBalancer) errorf(verb, name string, err error) error {
	return fmt.Errorf("load balancer %s: %s member %q: %w", lb.name, verb, name, err)
}

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
