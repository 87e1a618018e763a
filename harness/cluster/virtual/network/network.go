package network

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/kmsharness/kmsharness/internal/host"
	"github.com/kmsharness/kmsharness/internal/poll"
)

// latency is how long something takes: least, and less than more in addition.
type latency struct{ least, more time.Duration }

// latencies are those of a packet, and of a connection until it is accepted, in one data centre: a packet takes 60 to
// 400 µs, a handshake not much more, and a unix socket 5 to 25 µs. They are short compared with an interval (1 s), and
// not zero, so that races that exist on real machines exist here.
var (
	latencies        = latency{60 * time.Microsecond, 340 * time.Microsecond}
	latenciesConnect = latency{100 * time.Microsecond, 300 * time.Microsecond}
	latenciesUnix    = latency{5 * time.Microsecond, 20 * time.Microsecond} // of both
)

// at returns the latency of what begins at an instant. It is interpolated between two drawn values, so that it changes
// more slowly than time passes: what is sent later arrives later. It does not depend on how many packets were sent
// before, so that one connection does not change another.
func (l latency) at(id Hash, t time.Time) time.Duration {
	span := int64(2 * l.more) // in which it changes by less than half of that
	n, into := t.UnixNano()/span, t.UnixNano()%span
	from, to := int64(id.Number(n).Below(l.more)), int64(id.Number(n+1).Below(l.more))
	return l.least + time.Duration(from+(to-from)*into/span)
}

// DialTimeout ends a dial that nothing answers. Linux would give up after about two minutes (tcp_syn_retries=6);
// client-go's dialer after 30 s.
const DialTimeout = 30 * time.Second

// backlog of a listener: connections that wait to be accepted. Linux has at most 4096 (somaxconn).
const backlog = 128

// Link is what the network does with all that one machine sends another.
type Link struct {
	// Refused: no connection is made, as if nothing listened. Connections that exist stay.
	Refused bool
	// Cut: nothing arrives before it is over, and connecting waits. Nothing is lost: TCP retransmits, until one end
	// gives up.
	Cut bool
	// Delay comes on top of the usual latency.
	Delay time.Duration
}

// ends are the machines of a link, in the direction from the first to the second.
type ends struct{ from, to string }

// Network connects machines. It is safe for concurrent use.
type Network struct {
	seed uint64

	mu        sync.Mutex
	listeners map[string]*listener // by network and address, or by the inode of a unix socket
	conns     []*pair
	links     map[ends]Link
	frozen    map[string]bool
	thawed    map[string]chan struct{} // of those that are frozen
	silent    map[string]bool
	isolated  map[string]bool
}

// New is a network without machines. It is made in the bubble in which it is used.
func New(seed uint64) *Network {
	return &Network{seed: seed, listeners: map[string]*listener{}, links: map[ends]Link{}, frozen: map[string]bool{}, thawed: map[string]chan struct{}{}, silent: map[string]bool{}, isolated: map[string]bool{}}
}

// Host is a machine. Addresses belong to the machine that listens on them: a name in an address stands for itself, and need not be that of a machine. A
// unix socket has a file, on the real machine's disk, and takes connections only while the file is there and may be written.
func (n *Network) Host(name string) host.Host {
	return host.Host{
		DialFunc: func(ctx context.Context, network, address string) (net.Conn, error) {
			return n.dial(ctx, name, network, address)
		},
		ListenFunc: func(_ context.Context, network, address string) (net.Listener, error) {
			return n.listen(name, network, address)
		},
		LookupFunc: func(_ context.Context, name string) ([]string, error) { return []string{name}, nil },
	}
}

func (n *Network) listen(on, network, address string) (net.Listener, error) {
	l := &listener{n: n, host: on, at: addr{network, address}, accept: make(chan net.Conn, backlog), done: make(chan struct{})}
	n.mu.Lock()
	if strings.HasSuffix(address, ":0") {
		l.at = n.free(on, network)
	}
	l.key = l.at.key()
	used, alone := n.listeners[l.key] != nil, n.isolated[on]
	n.mu.Unlock()
	switch {
	case alone:
		return nil, l.fails(syscall.ENETDOWN)
	case used:
		return nil, l.fails(syscall.EADDRINUSE)
	}
	if network == "unix" {
		var err error
		if l.key, l.release, err = bind(address); err != nil {
			return nil, l.fails(err)
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.listeners[l.key] = l
	return l, nil
}

// free returns an address of a machine at which nothing listens. It counts up from the first ephemeral port of this
// machine alone, so that the order in which machines start does not matter.
func (n *Network) free(host, network string) (at addr) {
	for port := 32768; ; port++ {
		if at = (addr{network, net.JoinHostPort(host, strconv.Itoa(port))}); n.listeners[at.key()] == nil {
			return at
		}
	}
}

// It looks at the link three times: before, while it is cut (a SYN is repeated after 1, 2, 4 … s, as Linux does), and
// when the handshake would be over, since the listener may have gone meanwhile.
func (n *Network) dial(ctx context.Context, from, network, address string) (net.Conn, error) {
	at := addr{network, address}
	fails := func(err error) error { return &net.OpError{Op: "dial", Net: network, Addr: at, Err: err} }
	limited, cancel := context.WithTimeout(ctx, DialTimeout)
	defer cancel()
	gaveUp := func() error {
		if ctx.Err() == nil {
			return fails(os.ErrDeadlineExceeded)
		}
		return fails(ctx.Err())
	}
	if n.alone(from) { // at once: the end of a program that is killed takes no time
		return nil, fails(os.NewSyscallError("connect", syscall.ENETDOWN))
	}
	id, takes := Hash(n.seed).Text(from), latenciesConnect
	if network == "unix" {
		id, takes = id.Text(filepath.Base(address)), latenciesUnix // the folder has another name in each run
	} else {
		id = id.Text(address)
	}
	_, link := n.find(from, at)
	for wait := time.Second; link.Cut; wait *= 2 { // as a system repeats what asks for a connection
		if poll.Pause(limited, wait) != nil {
			return nil, gaveUp()
		}
		_, link = n.find(from, at)
	}
	if poll.Pause(limited, link.Delay+takes.at(id, time.Now())) != nil {
		return nil, gaveUp()
	}
	l, link := n.find(from, at)
	if network == "unix" {
		if err := maySend(address); err != nil {
			return nil, fails(os.NewSyscallError("connect", err))
		}
	}
	if l == nil || link.Refused {
		return nil, fails(os.NewSyscallError("connect", syscall.ECONNREFUSED))
	}
	p := n.connect(from, l, id)
	select {
	case l.accept <- p.server:
		return p.client, nil
	case <-l.done:
		p.reset()
		return nil, fails(os.NewSyscallError("connect", syscall.ECONNREFUSED))
	case <-limited.Done():
		p.reset()
		return nil, gaveUp()
	}
}

// alone reports whether a machine is isolated.
func (n *Network) alone(host string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.isolated[host]
}

// find is who listens at an address, if anybody does, and the link of a machine to him: cut if it is in one of the two directions.
func (n *Network) find(from string, at addr) (*listener, Link) {
	key := at.key()
	if at.network == "unix" {
		key = socketKey(at.address)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	l := n.listeners[key]
	if l == nil || n.isolated[from] || n.isolated[l.host] {
		return nil, Link{}
	}
	link := n.link(at.network, from, l.host)
	link.Cut = link.Cut || n.link(at.network, l.host, from).Cut
	return l, link
}

// link is that of one machine to another. What is silent still reaches its own machine by unix sockets.
func (n *Network) link(network, from, to string) Link {
	link := n.links[ends{from, to}]
	link.Cut = link.Cut || network != "unix" && (n.silent[from] || n.silent[to])
	return link
}

func (n *Network) connect(from string, l *listener, id Hash) *pair {
	client := addr{l.at.network, id.client()}
	takes := latencies
	if l.at.network == "unix" {
		takes = latenciesUnix
	}
	up, down := newHalf(from, l.host, id.Number(1), takes), newHalf(l.host, from, id.Number(2), takes)
	p := &pair{client: &conn{in: down, out: up, local: client, remote: l.at}, server: &conn{in: up, out: down, local: l.at, remote: client}}
	n.mu.Lock()
	defer n.mu.Unlock()
	live := n.conns[:0]
	for _, c := range n.conns {
		if !c.client.in.ended() || !c.client.out.ended() {
			live = append(live, c)
		}
	}
	clear(n.conns[len(live):])
	n.conns = append(live, p)
	n.obey(p)
	return p
}

// obey tells both directions of a connection what the network does with them.
func (n *Network) obey(p *pair) {
	for _, h := range []*half{p.client.in, p.client.out} {
		link := n.link(p.client.remote.network, h.from, h.to)
		h.obey(link.Delay, link.Cut || n.frozen[h.from] || n.frozen[h.to])
	}
}

// SetLink changes a link, in one direction, for connections that are open as well; the zero Link is a good one.
func (n *Network) SetLink(from, to string, l Link) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.links[ends{from, to}] = l
	for _, p := range n.conns {
		n.obey(p)
	}
}

// Freeze holds back all that a machine sends and is sent until it is thawed, as if its programs were stopped (SIGSTOP).
// Connections are made meanwhile, as a kernel does, and accepted after it. Its timers go on: the programs share a process with the harness, so a
// time-out that would fire after the pause fires in it, unseen by others.
func (n *Network) Freeze(host string, frozen bool) {
	n.hold(n.frozen, host, frozen)
	n.mu.Lock()
	defer n.mu.Unlock()
	thawed := n.thawed[host]
	switch {
	case frozen && thawed == nil:
		n.thawed[host] = make(chan struct{})
	case !frozen && thawed != nil:
		close(thawed)
		delete(n.thawed, host)
	}
}

// thaw is closed when a machine is not frozen any more; nil: it is not.
func (n *Network) thaw(host string) <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.thawed[host]
}

// Silence cuts the links of a machine with all others until it ends. Its unix sockets, which are on one machine, go on.
func (n *Network) Silence(host string, silent bool) { n.hold(n.silent, host, silent) }

func (n *Network) hold(held map[string]bool, host string, on bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	held[host] = on
	for _, p := range n.conns {
		n.obey(p)
	}
}

// Reset breaks the connections between two machines, in both directions of the dial.
func (n *Network) Reset(a, b string) {
	n.breakAll(func(p *pair) bool { return p.between(a, b) || p.between(b, a) }, func(*listener) bool { return false })
}

// Kill breaks all connections of a machine and ends its listeners, as the end of its programs does. Files of sockets stay.
func (n *Network) Kill(host string) {
	n.breakAll(func(p *pair) bool { return p.of(host) }, func(l *listener) bool { return l.host == host })
}

// Isolate is Kill of a machine that reaches nothing, and that nothing reaches, until Release. A goroutine cannot be
// killed: what the programs of the machine still do at their end (a last write, the release of a lease) must have no
// effect, as after SIGKILL. It returns the unix sockets that the machine listened on.
func (n *Network) Isolate(host string) (sockets []string) {
	n.mu.Lock()
	n.isolated[host] = true
	for _, l := range n.listeners {
		if l.host == host && l.at.network == "unix" {
			sockets = append(sockets, l.at.address)
		}
	}
	n.mu.Unlock()
	n.Kill(host)
	return sockets
}

// Release ends Isolate, and makes the socket files again that the programs have removed at their end: a program that is
// killed leaves its socket behind.
func (n *Network) Release(host string, sockets []string) error {
	n.mu.Lock()
	delete(n.isolated, host)
	n.mu.Unlock()
	var errs []error
	for _, path := range sockets {
		if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, makeSocket(path))
		}
	}
	return errors.Join(errs...)
}

func (n *Network) Close() {
	n.breakAll(func(*pair) bool { return true }, func(*listener) bool { return true })
}

func (n *Network) breakAll(conns func(*pair) bool, listeners func(*listener) bool) {
	var pairs []*pair
	var closed []*listener
	n.mu.Lock()
	for _, p := range n.conns {
		if conns(p) {
			pairs = append(pairs, p)
		}
	}
	for _, l := range n.listeners {
		if listeners(l) {
			closed = append(closed, l)
		}
	}
	n.mu.Unlock()
	for _, p := range pairs {
		p.reset()
	}
	for _, l := range closed {
		_ = l.Close() // it returns nil
	}
}

// listener is an address that somebody listens at.
type listener struct {
	n       *Network
	host    string
	at      addr
	key     string // in Network.listeners
	release func() // of a unix socket's inode
	accept  chan net.Conn
	done    chan struct{}
	once    sync.Once
}

var _ net.Listener = (*listener)(nil)

func (l *listener) fails(err error) error {
	return &net.OpError{Op: "listen", Net: l.at.network, Addr: l.at, Err: os.NewSyscallError("bind", err)}
}

func (l *listener) Accept() (net.Conn, error) {
	select {
	case <-l.done: // first: what nobody accepted is refused
	default:
		select {
		case c := <-l.accept:
			thawed := l.n.thaw(l.host)
			if thawed == nil {
				return c, nil
			}
			select {
			case <-thawed:
				return c, nil
			case <-l.done:
				c.(*conn).reset()
			}
		case <-l.done:
		}
	}
	return nil, &net.OpError{Op: "accept", Net: l.at.network, Addr: l.at, Err: net.ErrClosed}
}

// Close implements net.Listener. Connections that wait to be accepted are reset.
func (l *listener) Close() error {
	l.once.Do(func() {
		l.n.mu.Lock()
		if l.n.listeners[l.key] == l {
			delete(l.n.listeners, l.key)
		}
		l.n.mu.Unlock()
		if l.release != nil {
			l.release()
		}
		close(l.done)
		for {
			select {
			case c := <-l.accept:
				c.(*conn).reset()
			default:
				return
			}
		}
	})
	return nil
}

func (l *listener) Addr() net.Addr { return l.at }

type addr struct{ network, address string }

func (a addr) key() string { return a.network + " " + a.address }

func (a addr) Network() string { return a.network }

func (a addr) String() string { return a.address }
