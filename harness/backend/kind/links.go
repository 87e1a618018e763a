package kind

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/kmsharness/kmsharness/harness/backend/kind/docker"
	"github.com/kmsharness/kmsharness/harness/cluster"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/netfault"
)

// links are the connections between containers of a cluster, and the faults in force on them.
type links struct {
	layout   layout
	nodes    *cluster.Nodes
	machines *machines
	lb       *loadBalancer
	front    *netfault.Link // of clients on this machine
	// deployment of kube-apiserver's aggregators.
	deployment *deployment

	mu     sync.Mutex
	broken map[history.Link][]*breakage // by link, without its state
}

// breakage is what was done to one way of a link: rules in the order in which they were put in, and the proxy that they
// lead to, if any.
type breakage struct {
	way   way
	rules [][]string
	proxy bool
}

// SetLink implements cluster.Network.
func (ls *links) SetLink(ctx context.Context, l history.Link, f netfault.Fault) error {
	if l.From == cluster.FromClient {
		return ls.front.Set(f)
	}
	if err := f.Validate(); err != nil {
		return err
	}
	ls.mu.Lock()
	defer ls.mu.Unlock()
	key := history.Link{From: l.From, To: l.To, Node: l.Node}
	if err := ls.mend(ctx, key); err != nil || !f.Breaks() {
		return err
	}
	ways, err := ls.waysOf(key)
	if err != nil {
		return err
	}
	broken := make([]*breakage, len(ways))
	all, breaking := errgroup.WithContext(ctx)
	for i, w := range ways {
		broken[i] = &breakage{way: w}
		all.Go(func() error { return ls.breakWay(breaking, broken[i], f) })
	}
	ls.broken[key] = broken
	return all.Wait()
}

// breakWay leads new connections to a proxy, where the fault needs one, before it sees to those that exist. Every step is noted
// before it is taken: one that was interrupted may have been, and what cannot be undone ends the cluster.
func (ls *links) breakWay(ctx context.Context, b *breakage, f netfault.Fault) error {
	var port string
	if needsProxy(f) {
		var err error
		b.proxy = true
		if port, err = ls.startProxy(ctx, b.way, f); err != nil {
			return err
		}
	}
	for _, rule := range b.way.rules(f, port) {
		b.rules = append(b.rules, rule)
		if err := b.way.change(ctx, "-I", rule); err != nil {
			return err
		}
	}
	return nil
}

// mend undoes the faults of a link; ls.mu is held.
func (ls *links) mend(ctx context.Context, key history.Link) error {
	var all errgroup.Group
	for _, b := range ls.broken[key] {
		if ls.machines.container(b.way.node) != b.way.container { // the node has gone, and all that was in it
			continue
		}
		all.Go(func() error { return ls.mendWay(ctx, b) })
	}
	if err := all.Wait(); err != nil {
		return err
	}
	delete(ls.broken, key)
	return nil
}

// mendWay ends the proxy last: whom it resets must come through without it.
func (ls *links) mendWay(ctx context.Context, b *breakage) error {
	if len(b.rules) > 0 && len(b.way.held) > 0 {
		if _, err := b.way.container.exec(ctx, b.way.killCommand()...); err != nil {
			return fmt.Errorf("end connections of %s: %w", b.way.node, err)
		}
	}
	for len(b.rules) > 0 {
		last := len(b.rules) - 1
		if err := b.way.change(ctx, "-D", b.rules[last]); err != nil {
			return err
		}
		b.rules = b.rules[:last]
	}
	if !b.proxy {
		return nil
	}
	if err := ls.stopProxy(ctx, b.way); err != nil {
		return err
	}
	b.proxy = false
	return nil
}

// killCommand ends the sockets that a way holds. A pod may go meanwhile, and a node may have none.
func (w way) killCommand() []string {
	kill := append([]string{"ss", "--kill", "--tcp", "--numeric"}, w.held...)
	if !w.pods {
		return kill
	}
	const inPods = `for n in /run/netns/*; do [ ! -e "$n" ] || nsenter --net="$n" "$@" || [ ! -e "$n" ] || exit 1; done`
	return append([]string{"sh", "-c", inPods, "sh"}, kill...)
}

// change puts a rule in or takes it out: the table, the chain, the rest.
func (w way) change(ctx context.Context, verb string, rule []string) error {
	if _, err := w.container.exec(ctx, slices.Concat([]string{"iptables", "-w", "-t", rule[0], verb}, rule[1:])...); err != nil {
		return fmt.Errorf("packet filter of %s, %s: %w", w.node, strings.Join(rule, " "), err)
	}
	return nil
}

// restore ends every fault of a link.
func (ls *links) restore(ctx context.Context) error {
	errs := []error{ls.front.Set(netfault.Fault{})}
	ls.mu.Lock()
	defer ls.mu.Unlock()
	for key := range ls.broken {
		errs = append(errs, ls.mend(ctx, key))
	}
	return errors.Join(errs...)
}

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
	link        history.Link
	node        string
	container   container
	filter, nat string   // chains that the packets pass; a connection's first ones pass nat before filter
	match       []string // which packets they are
	// back is a chain and which packets of it are answers; nil: they cannot be told from others', as on loopback, where only
	// what asks has an owner.
	back     []string
	upstream string // where a proxy on the node reaches what the link leads to
	whole    bool   // everything that does not stay within the node
	part     string // ends the name of the proxy of one of several ways of a link on a node
	// held is the filter (ss) of sockets that end before the link is whole again, of the node or of its pods. A load balancer keeps what its clients
	// sent, and the kernel what a client sent before it closed a connection: reports of seconds ago would come in the midst of later ones, whenever
	// TCP sends again.
	held []string
	pods bool // these sockets are in the network namespaces of the node's pods
}

// waysOf are where a link can be broken.
func (ls *links) waysOf(l history.Link) ([]way, error) {
	reporter, proxy := strconv.Itoa(uidReporter), strconv.Itoa(uidProxy)
	switch {
	case l.From == history.RoleReporter && l.To == history.RoleAPIServer:
		return ls.onNode(way{link: l, filter: "OUTPUT", nat: "OUTPUT", upstream: ownAPIServer,
			match: []string{"--dport", portAPIServer, "-m", "owner", "--uid-owner", reporter}})
	case l.From == history.RoleReporter && l.To == history.RoleLoadBalancer && ls.lb.ip != "":
		return ls.onNode(way{link: l, filter: "OUTPUT", nat: "OUTPUT", upstream: ls.lb.ip + ":" + portAPIServer,
			match: []string{"-d", ls.lb.ip, "--dport", portAPIServer, "-m", "owner", "--uid-owner", reporter},
			held:  []string{"dst", ls.lb.ip, "and", "dport", "=", ":" + portAPIServer}})
	case l.From == history.RoleReporter && l.To == history.RoleAggregator:
		return ls.streams(way{link: l})
	case l.From == history.RoleAPIServer && l.To == history.RoleEtcd:
		return ls.onNode(way{link: l, filter: "OUTPUT", nat: "OUTPUT", upstream: ownEtcd,
			match: []string{"-d", "127.0.0.1", "--dport", portEtcd, "-m", "owner", "!", "--uid-owner", proxy},
			back:  []string{"OUTPUT", "-p", "tcp", "-s", "127.0.0.1", "--sport", portEtcd}})
	case l.From == history.RoleLoadBalancer && l.To == history.RoleAPIServer && ls.lb.ip != "":
		port := ls.lb.backendPort()
		return ls.onNode(way{link: l, filter: "INPUT", nat: "PREROUTING", upstream: "127.0.0.1:" + port,
			match: []string{"-s", ls.lb.ip, "--dport", port},
			back:  []string{"OUTPUT", "-p", "tcp", "-d", ls.lb.ip, "--sport", port},
			held:  []string{"dst", ls.lb.ip, "and", "sport", "=", ":" + port}})
	case l.From == history.RoleAggregator && l.To == history.RoleLoadBalancer:
		return ls.fromPods(l), nil
	case l.From == history.RoleNode && l.To == history.Network:
		return ls.onNode(way{link: l, whole: true})
	}
	return nil, fmt.Errorf("there is no link from %q to %q here: reporters go to their own API server, to the load balancer or to the aggregator, aggregators and clients to the load balancer", l.From, l.To)
}

func (ls *links) onNode(w way) ([]way, error) {
	w.node, w.container = w.link.Node, ls.machines.container(w.link.Node)
	if w.container == "" {
		return nil, fmt.Errorf("there is no node %q", w.node)
	}
	return []way{w}, nil
}

// fromPods is the way of every pod to the load balancer, which is the node itself where there is none. There, pods that
// asked for the API server by its service come to the same port, and are told from the others by where they wanted to go.
func (ls *links) fromPods(l history.Link) []way {
	var all []way
	for _, n := range ls.nodes.List() {
		w := way{link: l, node: n.Name, container: ls.machines.container(n.Name), filter: "FORWARD", nat: "PREROUTING",
			match: []string{"-d", ls.lb.ip, "--dport", portAPIServer},
			back:  []string{"FORWARD", "-p", "tcp", "-s", ls.lb.ip, "--sport", portAPIServer}, upstream: ls.lb.ip + ":" + portAPIServer,
			held: []string{"dst", ls.lb.ip, "and", "dport", "=", ":" + portAPIServer}, pods: true}
		if ls.lb.ip == "" {
			direct := []string{"-m", "conntrack", "--ctorigdstport", portAPIServer}
			w.filter, w.upstream, w.held = "INPUT", ownAPIServer, []string{"dport", "=", ":" + portAPIServer}
			w.match = append([]string{"!", "-i", "lo", "-s", podSubnet, "--dport", portAPIServer}, direct...)
			w.back = append([]string{"OUTPUT", "-p", "tcp", "!", "-o", "lo", "-d", podSubnet, "--sport", portAPIServer}, direct...)
		}
		all = append(all, w)
	}
	return all
}

// needsProxy says for which faults the kernel's packet filter is not enough. netem could delay and lose packets, but few kernels
// have it; and no rule accepts a connection that nobody answers.
func needsProxy(f netfault.Fault) bool {
	switch f.Mode {
	case netfault.Slow, netfault.SlowHandshake, netfault.Throttled, netfault.Lossy, netfault.Mute:
		return true
	}
	return false
}

// rules put a fault in force, in this order: each is a table, a chain and the rest. port is the proxy's. The first packet of
// a connection decides where all of them go, so new connections are turned to the proxy and no longer match the rules for
// those that exist: these are silent while a link is mute, go on while only handshakes are slow, and must come again through the proxy
// to be slow, throttled or lossy.
func (w way) rules(f netfault.Fault, port string) [][]string {
	if w.whole {
		return w.cutOff(f)
	}
	packets := append([]string{w.filter, "-p", "tcp"}, w.match...)
	var silence [][]string
	if f.Direction != netfault.Answers {
		silence = append(silence, slices.Concat([]string{"filter"}, packets, []string{"-j", "DROP"}))
	}
	if w.back != nil && f.Direction != netfault.Requests { // what was sent before, and watches
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
	case netfault.SlowHandshake:
		return [][]string{turn}
	case netfault.Slow, netfault.Throttled, netfault.Lossy:
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

// proxyProgram runs in a node's container while a link is slow or mute.
const proxyProgram = "kmsharness-proxy"

// uidProxy is the user of proxies, so that their own connections can be told from those that are turned to them.
const uidProxy = 65531

// proxyTimeout bounds the start and the end of a proxy, which take as long as the engine takes to run a command.
const proxyTimeout = 20 * time.Second

// proxyFolder is the one folder of a node's state that proxies, which are a user of their own, write into.
const proxyFolder = "proxies"

// makeProxyFolder makes it. No program under test has it in its container.
func (n nodeLayout) makeProxyFolder() error {
	return errors.Join(os.MkdirAll(n.file(proxyFolder), 0o755), os.Chmod(n.file(proxyFolder), 0o777))
}

// proxyName names the proxy of a link in a node's state folder; its file says where it accepts.
func (w way) proxyName() string {
	return filepath.Join(proxyFolder, w.link.From+"-"+w.link.To+w.part)
}
func (w way) proxyFile() string { return w.proxyName() + ".addr" }

// proxyCommand is what starts the proxy; its mistakes are in its log, for nobody waits for it.
func (w way) proxyCommand(f netfault.Fault) ([]string, error) {
	fault, err := json.Marshal(f)
	words := []string{filepath.Join(inNodeShared, proxyProgram), "--upstream", w.upstream, "--ready", inNode(w.proxyFile()), "--fault", string(fault)}
	return append([]string{"sh", "-c", `exec "$@" 2>` + inNode(logFile(w.proxyName())), "sh"}, words...), err
}

// startProxy starts the proxy of a link on a node and gives its port.
func (ls *links) startProxy(ctx context.Context, w way, f netfault.Fault) (port string, err error) {
	ctx, cancel := context.WithTimeout(ctx, proxyTimeout)
	defer cancel()
	state, user := ls.layout.node(w.node), fmt.Sprintf("%d:%d", uidProxy, uidProxy)
	if err := os.Remove(state.file(w.proxyFile())); err != nil && !errors.Is(err, fs.ErrNotExist) { // of one that ended with its node
		return "", err
	}
	command, err := w.proxyCommand(f)
	if err == nil {
		_, err = docker.Run(ctx, append([]string{"exec", "--detach", "--user", user, string(w.container)}, command...)...)
	}
	if err != nil {
		return "", fmt.Errorf("proxy on %s: %w", w.node, err)
	}
	err = until(ctx, readyPoll, "start the proxy on "+w.node, func(context.Context) error {
		text, err := os.ReadFile(state.file(w.proxyFile()))
		if err != nil {
			said, _ := os.ReadFile(state.file(logFile(w.proxyName()))) // more words for the error, if there are any
			return fmt.Errorf("%w %s", err, strings.TrimSpace(string(said)))
		}
		_, port, err = net.SplitHostPort(string(text))
		return err
	})
	return port, err
}

// stopProxy ends the proxy of a link on a node; when it returns its connections have been reset.
func (ls *links) stopProxy(ctx context.Context, w way) error {
	ctx, cancel := context.WithTimeout(ctx, proxyTimeout)
	defer cancel()
	if _, err := w.container.exec(ctx, "pkill", "-TERM", "-U", fmt.Sprint(uidProxy), "-f", inNode(w.proxyFile())); err != nil {
		return fmt.Errorf("end the proxy on %s, which should run: %w", w.node, err)
	}
	return until(ctx, readyPoll, "end the proxy on "+w.node, func(context.Context) error {
		if _, err := os.Stat(ls.layout.node(w.node).file(w.proxyFile())); !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("its connections are still there (%v)", err)
		}
		return nil
	})
}
