package kind

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/kmsharness/kmsharness/harness/backend/live"
	"github.com/kmsharness/kmsharness/harness/history"
)

// powerTimeout bounds the time from the start of nodes to API servers that are ready: 40 s on an idle machine.
const powerTimeout = 4 * time.Minute

// machines are nodes as one unit: their containers. A dead container has lost its power, a paused one stands still as a whole.
type machines struct {
	plane *plane
	nodes []*live.Node
	ready func(*live.Target)
}

var _ live.Unit = (*machines)(nil)

// Whole implements live.Plane.
func (p *plane) Whole(role string, nodes []*live.Node, ready func(*live.Target)) live.Unit {
	if role == history.RolePod {
		return &pods{plane: p, nodes: nodes, ready: ready}
	}
	return &machines{plane: p, nodes: nodes, ready: ready}
}

// those are the containers of the nodes in a state of docker's, "running" or "paused" for instance.
func (m *machines) those(ctx context.Context, states ...string) (containers []string, nodes []*live.Node, err error) {
	for _, n := range m.nodes {
		container := m.plane.container(n.Name)
		state, err := stateOf(ctx, container)
		if err != nil {
			return nil, nil, fmt.Errorf("node %s: %w", n.Name, err)
		}
		if slices.Contains(states, state) {
			containers, nodes = append(containers, container), append(nodes, n)
		}
	}
	return containers, nodes, nil
}

// stateOf is a container's state in docker's words. It is not asked for with inspect: a docker exec that was about to begin when the
// container was paused holds a lock until it goes on, inspect waits for that lock with the container's own, and then nothing unpauses it.
func stateOf(ctx context.Context, container string) (string, error) {
	state, err := docker(ctx, "ps", "--all", "--filter", "name=^/"+container+"$", "--format", "{{.State}}")
	if err == nil && state == "" {
		err = fmt.Errorf("there is no container %s", container)
	}
	return state, err
}

// act runs one docker command on all of the nodes that are in one of states, and gives those nodes.
func (m *machines) act(ctx context.Context, verb string, states ...string) ([]*live.Node, error) {
	containers, nodes, err := m.those(ctx, states...)
	if err != nil || len(nodes) == 0 {
		return nil, err
	}
	do := func() error {
		_, err := docker(ctx, append([]string{verb}, containers...)...)
		return err
	}
	if verb == "pause" { // to unpause waits for nobody: who waits himself would keep it from that for ever
		err = m.plane.starting.pause(do)
	} else {
		err = do()
	}
	if err != nil {
		return nil, fmt.Errorf("%s nodes: %w", verb, err)
	}
	return nodes, nil
}

// Kill implements live.Unit.
func (m *machines) Kill(ctx context.Context) error {
	containers, nodes, err := m.those(ctx, "running", "paused")
	if err == nil {
		err = endContainers(ctx, containers...)
	}
	if err != nil {
		return err
	}
	for _, n := range nodes {
		at, err := m.plane.diedAt(ctx, n.Name)
		if err != nil {
			return err
		}
		if err := m.plane.lose(history.RoleNode, n.Name, at); err != nil {
			return err
		}
		m.plane.Tell(at, history.Process{Role: history.RoleEtcd, Node: n.Name, State: history.ProcessKilled, Detail: powerLost})
	}
	if err := m.plane.keepAddresses(ctx, nodes); err != nil {
		m.plane.Spoil(live.DamagedPower)
		return err
	}
	return nil
}

// Stop implements live.Unit.
func (m *machines) Stop(context.Context) error {
	return errors.New("a node is not stopped but killed: it loses its power")
}

// Pause implements live.Unit.
func (m *machines) Pause(ctx context.Context) error {
	return m.freeze(ctx, "pause", "running", history.ProcessPaused, func(state string) bool { return lives(state) && state != history.ProcessPaused })
}

// Resume implements live.Unit. What the scenario had paused before the node goes on standing still.
func (m *machines) Resume(ctx context.Context) error {
	return m.freeze(ctx, "unpause", "paused", history.ProcessResumed, nil)
}

func (m *machines) freeze(ctx context.Context, verb, from, to string, which func(state string) bool) error {
	p := m.plane
	nodes, err := m.act(ctx, verb, from)
	if err != nil {
		return err
	}
	at := time.Now()
	if err := p.journals.Poll(); err != nil {
		return err
	}
	for _, n := range nodes {
		frozen := p.takeFrozen(n.Name)
		if which != nil {
			frozen = slices.DeleteFunc(p.living(n.Name), func(e entry) bool { return !which(e.process.State) })
			p.noteFrozen(n.Name, frozen)
		}
		for _, e := range frozen {
			p.tellUnit(at, e, to, "with its node")
		}
		p.Tell(at, history.Process{Role: history.RoleEtcd, Node: n.Name, State: to, Detail: "with its node"})
	}
	return nil
}

// Start implements live.Unit.
func (m *machines) Start(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, powerTimeout)
	defer cancel()
	_, nodes, err := m.those(ctx, "exited", "created", "dead")
	if err != nil || len(nodes) == 0 {
		return err
	}
	p := m.plane
	if err := p.powerOn(ctx, byAddress(nodes, p.address)); err != nil {
		p.Spoil(live.DamagedPower)
		return err
	}
	waiting, ctx := errgroup.WithContext(ctx)
	for _, n := range nodes {
		waiting.Go(func() error {
			if err := p.isBack(ctx, n, m.ready); err != nil {
				return fmt.Errorf("node %s: %w", n.Name, err)
			}
			return nil
		})
	}
	if err := waiting.Wait(); err != nil {
		p.Spoil(live.DamagedPower)
		return err
	}
	return nil
}

// Status implements live.Unit: what happened to nodes is the scenario's to know.
func (m *machines) Status() live.Status { return live.Status{Phase: live.Running} }

// keepAddresses keeps the addresses of nodes that lost their power, beside those that are kept already.
func (p *plane) keepAddresses(ctx context.Context, nodes []*live.Node) error {
	if len(nodes) == 0 {
		return nil
	}
	if p.kept == nil {
		network, err := networkOf(ctx, p.container(nodes[0].Name))
		if err != nil {
			return err
		}
		p.kept = newAddresses(placeholders{p.cluster, p.nodeImage, network})
	}
	wanted := slices.Collect(maps.Keys(p.kept.held))
	for _, n := range nodes {
		at, err := netip.ParseAddr(p.address(n.Name))
		if err != nil {
			return fmt.Errorf("address of node %s: %w", n.Name, err)
		}
		wanted = append(wanted, at)
	}
	return p.kept.keep(ctx, wanted...)
}

// powerOn starts the containers of nodes, sorted by their addresses: each gets the lowest that is free, which is its own.
func (p *plane) powerOn(ctx context.Context, nodes []*live.Node) error {
	var all []netip.Addr
	for _, n := range nodes {
		at, err := netip.ParseAddr(p.address(n.Name))
		if err != nil {
			return fmt.Errorf("address of node %s: %w", n.Name, err)
		}
		all = append(all, at)
	}
	others := slices.Collect(maps.Keys(p.kept.held)) // of nodes that stay without power
	others = slices.DeleteFunc(others, func(at netip.Addr) bool { return slices.Contains(all, at) })
	if err := p.kept.fill(ctx, all...); err != nil {
		return err
	}
	for i, n := range nodes {
		if err := p.kept.release(ctx, all[i]); err != nil {
			return err
		}
		if err := p.startNode(ctx, n.Name); err != nil {
			return err
		}
	}
	if len(others) == 0 {
		return p.kept.releaseAll(ctx)
	}
	return p.kept.keep(ctx, others...)
}

// startNode starts the container of a node. Certificates and the other members of etcd know the node by its address.
func (p *plane) startNode(ctx context.Context, node string) error {
	container := p.container(node)
	if _, err := docker(ctx, "start", container); err != nil {
		return fmt.Errorf("start node %s: %w", node, err)
	}
	ip, err := addressOf(ctx, container)
	if err != nil {
		return fmt.Errorf("start node %s: %w", node, err)
	}
	if was := p.address(node); ip != was {
		return fmt.Errorf("start node %s: the engine gave it the address %s, expected %s, which it had before: run the scenario while no other clusters come and go", node, ip, was)
	}
	return nil
}

// byAddress sorts nodes by their addresses as numbers: .10 comes after .9.
func byAddress(nodes []*live.Node, address func(node string) string) []*live.Node {
	sorted := slices.Clone(nodes)
	slices.SortStableFunc(sorted, func(a, b *live.Node) int {
		x, errX := netip.ParseAddr(address(a.Name))
		y, errY := netip.ParseAddr(address(b.Name))
		if errX != nil || errY != nil {
			return strings.Compare(address(a.Name), address(b.Name))
		}
		return x.Compare(y)
	})
	return sorted
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

func highest(of []netip.Addr) netip.Addr { return slices.MaxFunc(of, netip.Addr.Compare) }

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
	var errs []error
	for at := range a.held {
		if !slices.Contains(wanted, at) {
			errs = append(errs, a.release(ctx, at))
		}
	}
	return errors.Join(errs...)
}

// fill holds the wanted addresses and every free one below the highest of them.
func (a *addresses) fill(ctx context.Context, wanted ...netip.Addr) error {
	for {
		at, err := a.next(ctx)
		if err != nil {
			return err
		}
		if at.Less(highest(wanted)) {
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

// releaseAll drops every placeholder.
func (a *addresses) releaseAll(ctx context.Context) error {
	var errs []error
	for at := range a.held {
		errs = append(errs, a.release(ctx, at))
	}
	return errors.Join(errs...)
}

// placeholders are containers of the node image that sleep. They bear the cluster's label, so whoever deletes the cluster deletes
// them.
type placeholders struct{ cluster, image, network string }

var _ holder = placeholders{}

// networkOf is the network of a container.
func networkOf(ctx context.Context, container string) (string, error) {
	name, err := docker(ctx, "inspect", "--format", "{{range $name, $_ := .NetworkSettings.Networks}}{{$name}} {{end}}", container)
	if err == nil && len(strings.Fields(name)) != 1 {
		err = fmt.Errorf("container %s is on the networks %q, expected one", container, name)
	}
	return strings.TrimSpace(name), err
}

func (h placeholders) hold(ctx context.Context) (string, netip.Addr, error) {
	id, err := docker(ctx, "run", "--detach", "--network", h.network, "--label", "io.x-k8s.kind.cluster="+h.cluster, "--entrypoint", "sleep", h.image, "infinity")
	if err != nil {
		return "", netip.Addr{}, err
	}
	text, err := addressOf(ctx, id)
	if err != nil {
		return "", netip.Addr{}, err
	}
	at, err := netip.ParseAddr(text)
	return id, at, err
}

func (h placeholders) drop(ctx context.Context, id string) error {
	return removeContainer(ctx, id)
}
