package sim

import (
	"net/netip"
	"slices"
	"time"

	"github.com/kmsharness/kmsharness/harness/altsvc"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/reporter/publish"
)

// origin is the load balancer, as clients with alternatives know it. It is no API server's address.
const origin = "10.255.255.254:6443"

// alternatives are the API servers that a reporter with connectivity altsvc knows beside the load balancer. The choice is the product's.
type alternatives struct {
	r           *reporter
	table       *altsvc.Table
	dialTimeout time.Duration
	// used is the alternative that the reporter's connection leads to; empty: the load balancer.
	used string
	// unreachable is since when alternatives failed, as long as the reporter is to stay with them; see TestHooks.Patience.
	unreachable map[string]time.Time
}

// alternativesOf is nil with another connectivity.
func alternativesOf(r *reporter) *alternatives {
	if r.w.connectivity != history.ConnectAltSvc {
		return nil
	}
	o := r.w.hooks.alternatives(publish.Alternatives(r.w.timing))
	o.Clock = r.w.k.Clock()
	o.LocalAddresses = func() ([]netip.Addr, error) { return []netip.Addr{r.node.address.Addr()}, nil }
	table, err := altsvc.NewTable(origin, o)
	if err != nil {
		return nil // origin is valid
	}
	return &alternatives{r: r, table: table, dialTimeout: o.DialTimeout, unreachable: map[string]time.Time{}}
}

// next is where the next attempt of a request goes; empty: to the load balancer.
func (a *alternatives) next(tried []string) string {
	if a == nil {
		return ""
	}
	return a.table.Next(tried, a.connected)
}

func (a *alternatives) connected(address string) bool {
	return a.used == address && a.r.pub.c != nil && !a.r.pub.c.broken
}

// heard records an answer, or the end of a connection before one.
func (a *alternatives) heard(from string, rep reply) {
	switch {
	case a == nil:
	case rep.err != nil:
		a.failed(from)
	default:
		if from != "" {
			delete(a.unreachable, from)
			a.table.Used(from, a.connected)
		}
		_ = a.table.Learn(a.r.w.hooks.heard(a.r.w.advertised()))
	}
}

// failed reports whether another alternative may be tried.
func (a *alternatives) failed(address string) bool {
	if address == "" {
		return false
	}
	now := a.r.w.k.Now()
	since, known := a.unreachable[address]
	if !known {
		since = now
		a.unreachable[address] = since
	}
	if now.Sub(since) < a.r.w.hooks.Patience {
		return false
	}
	delete(a.unreachable, address)
	a.table.Failed(address, false)
	return true
}

// dial connects to an API server directly. A machine that is gone, or off the network, does not even refuse.
func (a *alternatives) dial(address string, done func(*conn, error)) {
	w, own := a.r.w, a.r.node
	i := slices.IndexFunc(w.nodes, func(n *node) bool { return n.address.String() == address })
	if i < 0 || w.nodes[i].server.paused || w.nodes[i] != own && (w.nodes[i].off || own.off) {
		w.k.After(a.dialTimeout, func() { done(nil, errTimeout) })
		return
	}
	n := w.nodes[i]
	w.dialNode(n.direct, n.server, func(c *conn, err error) {
		if err == nil && n != own {
			c.links = append(c.links, own.direct)
			own.direct.conns = append(own.direct.conns, c)
		}
		done(c, err)
	})
}

// advertised is the Alt-Svc field of an answer: every API server that is ready.
func (w *world) advertised() string {
	var field altsvc.Field
	for _, n := range w.nodes {
		if n.server.runs() && !n.off && !n.stored.silent() {
			field.Alternatives = append(field.Alternatives, altsvc.Alternative{Protocol: "h2", Host: n.address.Addr().String(), Port: n.address.Port(), MaxAge: altsvc.DefaultMaxAge})
		}
	}
	return field.String()
}

// newAddress is that of a node that nobody had before.
func (w *world) newAddress() netip.AddrPort {
	w.addresses++
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, byte(w.addresses >> 16), byte(w.addresses >> 8), byte(w.addresses)}), 6443)
}
