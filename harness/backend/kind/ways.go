package kind

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/netfault"
)

// Ports of a node.
const (
	portAPIServer = "6443"
	portEtcd      = "2379"
)

// podSubnet is kind's default.
const podSubnet = "10.244.0.0/16"

// Addresses of a node as it sees itself.
const (
	ownAPIServer = "127.0.0.1:" + portAPIServer
	ownEtcd      = "127.0.0.1:" + portEtcd
)

// way is where packets of a link pass a node: on their way out of the node of the client, if that is one, else on their way
// in.
type way struct {
	link            history.Link
	node, container string
	filter, nat     string   // chains that the packets pass; a connection's first ones pass nat before filter
	match           []string // which packets they are
	// back is a chain and which packets of it are answers; nil: they cannot be told from others', as on loopback, where only
	// what asks has an owner.
	back     []string
	upstream string // where a proxy on the node reaches what the link leads to
	whole    bool   // everything that does not stay within the node
}

// waysOf are where a link can be broken.
func (p *plane) waysOf(l history.Link) ([]way, error) {
	reporter, proxy := strconv.Itoa(uidReporter), strconv.Itoa(uidProxy)
	switch {
	case l.From == history.RoleReporter && l.To == history.RoleAPIServer:
		return p.onNode(way{link: l, filter: "OUTPUT", nat: "OUTPUT", upstream: ownAPIServer,
			match: []string{"--dport", portAPIServer, "-m", "owner", "--uid-owner", reporter}})
	case l.From == history.RoleAPIServer && l.To == history.RoleEtcd:
		return p.onNode(way{link: l, filter: "OUTPUT", nat: "OUTPUT", upstream: ownEtcd,
			match: []string{"-d", "127.0.0.1", "--dport", portEtcd, "-m", "owner", "!", "--uid-owner", proxy},
			back:  []string{"OUTPUT", "-p", "tcp", "-s", "127.0.0.1", "--sport", portEtcd}})
	case l.From == history.RoleLoadBalancer && l.To == history.RoleAPIServer && p.lb.ip != "":
		return p.onNode(way{link: l, filter: "INPUT", nat: "PREROUTING", upstream: ownAPIServer,
			match: []string{"-s", p.lb.ip, "--dport", portAPIServer},
			back:  []string{"OUTPUT", "-p", "tcp", "-d", p.lb.ip, "--sport", portAPIServer}})
	case l.From == history.RoleAggregator && l.To == history.RoleLoadBalancer:
		return p.fromPods(l), nil
	case l.From == history.RoleNode && l.To == history.Network:
		return p.onNode(way{link: l, whole: true})
	}
	return nil, fmt.Errorf("there is no link from %q to %q here: reporters go to their own API server, aggregators and clients to the load balancer", l.From, l.To)
}

func (p *plane) onNode(w way) ([]way, error) {
	w.node, w.container = w.link.Node, p.container(w.link.Node)
	if w.container == "" {
		return nil, fmt.Errorf("there is no node %q", w.node)
	}
	return []way{w}, nil
}

// fromPods is the way of every pod to the load balancer, which is the node itself where there is none. There, pods that
// asked for the API server by its service come to the same port, and are told from the others by where they wanted to go.
func (p *plane) fromPods(l history.Link) []way {
	var all []way
	for _, n := range p.nodes.List() {
		w := way{link: l, node: n.Name, container: p.container(n.Name), filter: "FORWARD", nat: "PREROUTING",
			match: []string{"-d", p.lb.ip, "--dport", portAPIServer},
			back:  []string{"FORWARD", "-p", "tcp", "-s", p.lb.ip, "--sport", portAPIServer}, upstream: p.lb.ip + ":" + portAPIServer}
		if p.lb.ip == "" {
			direct := []string{"-m", "conntrack", "--ctorigdstport", portAPIServer}
			w.filter, w.upstream = "INPUT", ownAPIServer
			w.match = append([]string{"!", "-i", "lo", "-s", podSubnet, "--dport", portAPIServer}, direct...)
			w.back = append([]string{"OUTPUT", "-p", "tcp", "!", "-o", "lo", "-d", podSubnet, "--sport", portAPIServer}, direct...)
		}
		all = append(all, w)
	}
	return all
}

// needsProxy says for which faults the kernel's packet filter is not enough. netem could delay packets, but few kernels
// have it; and no rule accepts a connection that nobody answers.
func needsProxy(f netfault.Fault) bool { return f.Mode == netfault.Slow || f.Mode == netfault.Mute }

// rules put a fault in force, in this order: each is a table, a chain and the rest. port is the proxy's. The first packet of
// a connection decides where all of them go, so new connections are turned to the proxy and no longer match the rules for
// those that exist: these are silent while a link is mute, and must come again through the proxy to be slow.
func (w way) rules(f netfault.Fault, port string) [][]string {
	if w.whole {
		return w.cutOff(f)
	}
	packets := append([]string{w.filter, "-p", "tcp"}, w.match...)
	silence := [][]string{slices.Concat([]string{"filter"}, packets, []string{"-j", "DROP"})}
	if w.back != nil { // what was sent before, and watches
		silence = append(silence, slices.Concat([]string{"filter"}, w.back, []string{"-j", "DROP"}))
	}
	reset := slices.Concat([]string{"filter"}, packets, []string{"-j", "REJECT", "--reject-with", "tcp-reset"})
	turn := slices.Concat([]string{"nat", w.nat, "-p", "tcp"}, w.match, []string{"-j", "REDIRECT", "--to-ports", port})
	switch f.Mode {
	case netfault.Cut:
		return silence
	case netfault.Reset:
		return [][]string{reset}
	case netfault.Mute:
		return append([][]string{turn}, silence...)
	case netfault.Slow:
		return [][]string{turn, reset}
	}
	return nil
}

// cutOff leaves a node alone with itself, whatever its interfaces are called.
func (w way) cutOff(f netfault.Fault) [][]string {
	if f.Mode != netfault.Cut {
		return nil
	}
	return [][]string{
		{"filter", "INPUT", "!", "-i", "lo", "-j", "DROP"},
		{"filter", "OUTPUT", "!", "-o", "lo", "-j", "DROP"},
		{"filter", "FORWARD", "-j", "DROP"},
	}
}
