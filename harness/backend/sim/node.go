package sim

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

	"github.com/kmsharness/kmsharness/harness/history"
)

// node is a control-plane node: an API server, its plugins, a reporter, and the ways between them and to the others.
type node struct {
	w         *world
	name      string
	host      *node         // of a pod of a further API server: the node that it is on
	alongside []*node       // on a node: the pods of further API servers
	since     time.Time     // of its Node object
	ahead     time.Duration // its clock, of the true time
	server    *server
	reporter  *reporter
	plugins   []*kmsPlugin   // by keyID
	reports   *link          // reporter to API server, or to the load balancer
	balanced  *link          // load balancer to API server
	stored    *link          // API server to etcd
	direct    *link          // any client to API server, past the load balancer
	address   netip.AddrPort // of its API server
	off       bool           // the network
	isolated  bool           // the load balancer does not know it
	removed   bool           // its reporter lingers
	unread    bool           // its API server was told something since it was last seen to have loaded it
	sockets   []string       // of its reporter, where an operator gives each node its own

	unavailable map[string]string  // by role, node or pod: why its processes cannot be told anything
	ran         map[string][]*proc // by role: what ran before its end
	paused      []*proc            // what its pause stopped
}

func newNode(w *world, name string, plugins []string) *node {
	n := &node{w: w, name: name, address: w.newAddress(), unavailable: map[string]string{}, ran: map[string][]*proc{}}
	to := history.RoleAPIServer
	if history.AnyAPIServer(w.connectivity) {
		to = history.RoleLoadBalancer
	}
	if w.connectivity == history.ConnectStream {
		to = history.RoleAggregator
	}
	n.reports = newLink(w, history.RoleReporter, to, name)
	n.balanced = newLink(w, history.RoleLoadBalancer, history.RoleAPIServer, name)
	n.stored = newLink(w, history.RoleAPIServer, history.RoleEtcd, name)
	n.direct = newLink(w, "", history.RoleAPIServer, name)
	n.server, n.reporter = newServer(w, n), newReporter(w, n)
	for _, k := range plugins {
		n.add(k)
	}
	return n
}

// add gives it a plugin that does not run yet, unless there is one.
func (n *node) add(keyID string) *kmsPlugin {
	if i := slices.IndexFunc(n.plugins, func(p *kmsPlugin) bool { return p.keyID == keyID }); i >= 0 {
		return n.plugins[i]
	}
	p := newPlugin(n.w, n.name, keyID)
	n.plugins = append(n.plugins, p)
	slices.SortFunc(n.plugins, func(a, b *kmsPlugin) int { return cmp.Compare(a.keyID, b.keyID) })
	return p
}

// plugin is that of a keyID; where there is none, one that does not run.
func (n *node) plugin(keyID string) *kmsPlugin {
	for _, p := range n.plugins {
		if p.keyID == keyID {
			return p
		}
	}
	return newPlugin(n.w, n.name, keyID)
}

// probed has the plugins that its reporter asks: its own.
func (n *node) probed() *node {
	if n.w.hooks.ForeignSockets {
		return n.base()
	}
	return n
}

// base is the node itself, also of a pod on it.
func (n *node) base() *node {
	if n.host != nil {
		return n.host
	}
	return n
}

// kube is its kube-apiserver.
func (n *node) kube() *server { return n.base().server }

// parts are its processes in the order in which they start.
func (n *node) parts() []*proc {
	var all []*proc
	for _, p := range n.plugins {
		all = append(all, &p.proc)
	}
	return append(all, &n.server.proc, &n.reporter.proc)
}

// processes is that of a node, or of the pod of an API server on it: a node has the pods of all, after that of the one that they depend on.
func (n *node) processes(role string) []*proc {
	all := n.parts()
	if role == history.RoleNode {
		for _, b := range n.alongside {
			all = append(all, b.parts()...)
		}
	}
	return all
}

// nodeNamed is nil if there is none.
func (w *world) nodeNamed(name string) *node {
	for _, n := range w.nodes {
		if n.name == name {
			return n
		}
	}
	return nil
}

func (w *world) addNode(n *node) {
	w.nodes = append(w.nodes, n)
	slices.SortFunc(w.nodes, func(a, b *node) int { return cmp.Compare(a.name, b.name) })
}
