package kind

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/kmsharness/kmsharness/harness/backend/kind/docker"
	"github.com/kmsharness/kmsharness/harness/cluster"
	"github.com/kmsharness/kmsharness/harness/history"
)

// powerTimeout bounds the time from the start of nodes to API servers that are ready: 40 s on an idle machine.
const powerTimeout = 4 * time.Minute

// nodesUnit are nodes as one unit: their containers. A dead container has lost its power, a paused one stands still with all that is in it.
type nodesUnit struct {
	*controlPlane
	nodes []*cluster.Node
	ready func(*cluster.Target)
}

var _ cluster.Unit = (*nodesUnit)(nil)

// kubePods are the static pods of kube-apiserver, with their nodes.
type kubePods struct{ *controlPlane }

// NodeUnit implements cluster.Processes.
func (p kubePods) NodeUnit(role string, nodes []*cluster.Node, ready func(*cluster.Target)) cluster.Unit {
	if role == history.RolePod {
		return &staticPods{broken{errPodRuns}, p.controlPlane, nodes, ready}
	}
	return &nodesUnit{p.controlPlane, nodes, ready}
}

// inState returns the nodes whose container is in one of these states of docker, such as "running", and the containers.
func (m *nodesUnit) inState(ctx context.Context, states ...string) (containers []string, nodes []*cluster.Node, err error) {
	for _, n := range m.nodes {
		c := m.container(n.Name)
		state, err := c.state(ctx)
		if err != nil {
			return nil, nil, fmt.Errorf("node %s: %w", n.Name, err)
		}
		if slices.Contains(states, state) {
			containers, nodes = append(containers, string(c)), append(nodes, n)
		}
	}
	return containers, nodes, nil
}

// Kill implements cluster.Unit.
func (m *nodesUnit) Kill(ctx context.Context) error {
	containers, nodes, err := m.inState(ctx, "running", "paused")
	if err == nil {
		err = endContainers(ctx, containers...)
	}
	if err != nil {
		return err
	}
	for _, n := range nodes {
		at, err := m.container(n.Name).diedAt(ctx)
		if err != nil {
			return fmt.Errorf("when node %s ended: %w", n.Name, err)
		}
		if err := m.units.nodeDied(n.Name, at); err != nil {
			return err
		}
		m.Record(at, history.Process{Role: history.RoleEtcd, Node: n.Name, State: history.ProcessKilled, Detail: powerLost})
	}
	return m.unlessTainted(m.keepAddresses(ctx, nodes))
}

// unlessTainted notes that nodes which could not be brought back, if so, are not worth another try.
func (m *nodesUnit) unlessTainted(err error) error {
	if err != nil {
		m.MarkDirty(cluster.TaintedPower)
	}
	return err
}

// Stop implements cluster.Unit.
func (m *nodesUnit) Stop(context.Context) error {
	return errors.New("a node is not stopped but killed: it loses its power")
}

// Pause implements cluster.Unit.
func (m *nodesUnit) Pause(ctx context.Context) error {
	return m.freeze(ctx, "pause", "running", history.ProcessPaused, m.units.freeze)
}

// Resume implements cluster.Unit. What the scenario had paused before the node goes on standing still.
func (m *nodesUnit) Resume(ctx context.Context) error {
	return m.freeze(ctx, "unpause", "paused", history.ProcessResumed, m.units.thaw)
}

// freeze runs one docker command on all nodes that are in a state, and records what became of what runs there.
func (m *nodesUnit) freeze(ctx context.Context, verb, from, to string, record func(node string, at time.Time)) error {
	containers, nodes, err := m.inState(ctx, from)
	if err != nil || len(nodes) == 0 {
		return err
	}
	do := func() error {
		_, err := docker.Run(ctx, append([]string{verb}, containers...)...)
		return err
	}
	if verb == "pause" { // to unpause waits for nobody: what waits itself would keep it from that for ever
		err = m.starting.pause(do)
	} else {
		err = do()
	}
	if err != nil {
		return fmt.Errorf("%s nodes: %w", verb, err)
	}
	at := time.Now()
	if err := m.units.journals.Poll(); err != nil {
		return err
	}
	for _, n := range nodes {
		record(n.Name, at)
		m.Record(at, history.Process{Role: history.RoleEtcd, Node: n.Name, State: to, Detail: "with its node"})
	}
	return nil
}

// Start implements cluster.Unit.
func (m *nodesUnit) Start(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, powerTimeout)
	defer cancel()
	_, nodes, err := m.inState(ctx, "exited", "created", "dead")
	if err != nil || len(nodes) == 0 {
		return err
	}
	err = m.powerOn(ctx, nodes)
	if err == nil {
		err = cluster.EachNode(ctx, nodes, func(ctx context.Context, n *cluster.Node) error { return m.isBack(ctx, n) })
	}
	return m.unlessTainted(err)
}

// isBack returns when what ran on a node before it lost its power runs again.
func (m *nodesUnit) isBack(ctx context.Context, n *cluster.Node) error {
	member := func(ctx context.Context) error {
		return m.etcdMembers.ask(ctx, n.Name, "/v3/maintenance/status", struct{}{}, nil)
	}
	if err := until(ctx, readyPoll, "wait for its etcd member", member); err != nil {
		return err
	}
	etcd := history.Process{Role: history.RoleEtcd, Node: n.Name}
	for _, etcd.State = range []string{history.ProcessStarted, history.ProcessReady} {
		m.Record(time.Now(), etcd)
	}
	reached, cancel := context.WithTimeout(ctx, readyGrace)
	defer cancel()
	_ = m.aggregators.awaitStreams(reached, m.container(n.Name)) // without the other nodes it does not
	return runsAgain(ctx, n, m.units.regain(history.RoleNode, n.Name), m.ready)
}

// Status implements cluster.Unit: what happened to nodes is the scenario's to know.
func (m *nodesUnit) Status() cluster.Status { return cluster.Status{Phase: cluster.Running} }

// keepAddresses keeps the addresses of nodes that lost their power, beside those that are kept already.
func (m *nodesUnit) keepAddresses(ctx context.Context, nodes []*cluster.Node) error {
	_, wanted, err := m.byAddress(nodes)
	if err != nil || len(nodes) == 0 {
		return err
	}
	if m.kept == nil {
		m.kept = newAddresses(placeholders{m.clusters.name, m.clusters.nodeImage})
	}
	return m.kept.keep(ctx, slices.AppendSeq(wanted, maps.Keys(m.kept.held))...)
}

// powerOn starts the containers of nodes in the order of their addresses: each gets the lowest that is free, which is its own.
func (m *nodesUnit) powerOn(ctx context.Context, nodes []*cluster.Node) error {
	nodes, all, err := m.byAddress(nodes)
	if err != nil {
		return err
	}
	others := slices.Collect(maps.Keys(m.kept.held)) // of nodes that stay without power
	others = slices.DeleteFunc(others, func(at netip.Addr) bool { return slices.Contains(all, at) })
	if err := m.kept.fill(ctx, all...); err != nil {
		return err
	}
	for i, n := range nodes {
		if err := m.kept.release(ctx, all[i]); err != nil {
			return err
		}
		if err := m.startNode(ctx, n.Name, all[i].String()); err != nil {
			return fmt.Errorf("start node %s: %w", n.Name, err)
		}
	}
	if len(others) == 0 {
		return m.kept.releaseAll(ctx)
	}
	return m.kept.keep(ctx, others...)
}

// startNode starts the container of a node. Certificates and the other members of etcd know the node by its address.
func (m *nodesUnit) startNode(ctx context.Context, node, address string) error {
	c := m.container(node)
	if _, err := docker.Run(ctx, "start", string(c)); err != nil {
		return err
	}
	ip, err := c.address(ctx)
	if err == nil && ip != address {
		err = fmt.Errorf("the engine gave it the address %s, expected %s, which it had before: run the scenario while no other clusters come and go", ip, address)
	}
	return err
}

// byAddress sorts nodes by their addresses as numbers (.10 comes after .9), and returns these as well.
func (m *machines) byAddress(nodes []*cluster.Node) (sorted []*cluster.Node, addresses []netip.Addr, err error) {
	at := map[*cluster.Node]netip.Addr{}
	for _, n := range nodes {
		if at[n], err = netip.ParseAddr(m.address(n.Name)); err != nil {
			return nil, nil, fmt.Errorf("address of node %s: %w", n.Name, err)
		}
	}
	sorted = slices.SortedFunc(maps.Keys(at), func(a, b *cluster.Node) int { return cmp.Or(at[a].Compare(at[b]), cmp.Compare(a.Name, b.Name)) })
	for _, n := range sorted {
		addresses = append(addresses, at[n])
	}
	return sorted, addresses, nil
}

// A container that ends gives its address back, and the engine gives the lowest free one to whatever starts next, of another
// cluster for instance. Certificates and etcd's members know a node by its address, so placeholders keep it while the node is
// without power, and fill the gaps below it when it starts.

// maxPlaceholders bounds the placeholders: more than that many gaps are not left by clusters that come and go.
const maxPlaceholders = 64

// holder makes and drops containers that do nothing but have an address.
type holder interface {
	hold(ctx context.Context) (id string, at netip.Addr, err error)
	drop(ctx context.Context, id string) error
}

// addresses are those that placeholders have.
type addresses struct {
	holder
	held map[netip.Addr]string // ids
}

func newAddresses(h holder) *addresses { return &addresses{holder: h, held: map[netip.Addr]string{}} }

// next makes one more placeholder. It is no error that there are many already, unless there are far too many.
func (a *addresses) next(ctx context.Context) (netip.Addr, error) {
	if len(a.held) >= maxPlaceholders {
		return netip.Addr{}, fmt.Errorf("%d placeholders did not fill the gaps between the addresses of nodes", len(a.held))
	}
	id, at, err := a.hold(ctx)
	if err != nil {
		return at, fmt.Errorf("placeholder for the address of a node: %w", err)
	}
	a.held[at] = id
	return at, nil
}

// keep holds the wanted addresses and no others.
func (a *addresses) keep(ctx context.Context, wanted ...netip.Addr) error {
	if err := a.fill(ctx, wanted...); err != nil {
		return err
	}
	return a.releaseAll(ctx, wanted...)
}

// fill holds the wanted addresses and every free one below the highest of them.
func (a *addresses) fill(ctx context.Context, wanted ...netip.Addr) error {
	for {
		at, err := a.next(ctx)
		if err != nil {
			return err
		}
		if at.Less(slices.MaxFunc(wanted, netip.Addr.Compare)) {
			continue
		}
		if !slices.Contains(wanted, at) { // beyond: no gap is left
			err = a.release(ctx, at)
		}
		for _, w := range wanted {
			if _, held := a.held[w]; !held && err == nil {
				return fmt.Errorf("the address %s of a node was given to another container when the node lost its power: run the scenario while no other clusters come and go", w)
			}
		}
		if err != nil || !slices.Contains(wanted, at) {
			return err
		}
	}
}

// release drops the placeholder of an address.
func (a *addresses) release(ctx context.Context, at netip.Addr) error {
	if err := a.drop(ctx, a.held[at]); err != nil {
		return fmt.Errorf("give the address %s free: %w", at, err)
	}
	delete(a.held, at)
	return nil
}

// releaseAll drops every placeholder but those of the addresses.
func (a *addresses) releaseAll(ctx context.Context, but ...netip.Addr) error {
	var errs []error
	for at := range a.held {
		if !slices.Contains(but, at) {
			errs = append(errs, a.release(ctx, at))
		}
	}
	return errors.Join(errs...)
}

// placeholders are containers of the node image that sleep. They bear the cluster's label, so they are deleted with the
// cluster.
type placeholders struct{ cluster, image string }

var _ holder = placeholders{}

func (h placeholders) hold(ctx context.Context) (string, netip.Addr, error) {
	id, err := docker.Run(ctx, "run", "--detach", "--network", network, "--label", "io.x-k8s.kind.cluster="+h.cluster, "--entrypoint", "sleep", h.image, "infinity")
	if err != nil {
		return "", netip.Addr{}, err
	}
	text, err := container(id).address(ctx)
	if err != nil {
		return "", netip.Addr{}, err
	}
	at, err := netip.ParseAddr(text)
	return id, at, err
}

func (h placeholders) drop(ctx context.Context, id string) error { return container(id).remove(ctx) }
